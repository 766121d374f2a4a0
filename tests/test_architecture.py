"""The house's rules that import-linter does not see."""

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import quanet

ROOT = Path(__file__).parents[1]
FILES = sorted((ROOT / "src" / "quanet").rglob("*.py"))
DOORS = {
    "numba": "kernels/",
    "matplotlib": "report/plots/",
    "torch": "nn/",
    "sentence_transformers": "nn/",
    "transformers": "nn/",
    "jinja2": "report/",
    "ray": "experiments/engines.py",
    "skops": "persist/",
    "safetensors": "persist/",
}


def imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_heavy_dependency_has_one_door(file):
    place = file.relative_to(ROOT / "src" / "quanet").as_posix()
    for name in imports(ast.parse(file.read_text())):
        assert name not in DOORS or place.startswith(DOORS[name]), f"{place} imports {name}"


def test_every_import_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + [one for extra in project["optional-dependencies"].values() for one in extra]
    declared = {one.split(">")[0].split("=")[0].split("[")[0] for one in wanted}
    names = {"sklearn": "scikit-learn"}
    for file in FILES:
        for name in imports(ast.parse(file.read_text())):
            assert name in sys.stdlib_module_names or names.get(name, name.replace("_", "-")) in declared, (
                f"{file.name}: {name}"
            )


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_room_fits_its_ceiling(file):
    assert len(file.read_text().splitlines()) <= 300


def test_every_door_is_a_dependency_that_something_imports():
    used = {name for file in FILES for name in imports(ast.parse(file.read_text()))}
    assert set(DOORS) <= used


def run(code):
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout


def test_importing_quanet_imports_nothing_heavy():
    loaded = run("import sys, quanet; print(*sorted(sys.modules))").split()
    assert not {"torch", "sklearn", "scipy", "numba", "pandas", "numpy", "matplotlib"} & set(loaded)


def test_the_help_imports_nothing_heavy():
    loaded = run("import sys, quanet.cli.main; print(*sorted(sys.modules))").split()
    assert not {"torch", "sklearn", "scipy", "numba", "pandas", "matplotlib"} & set(loaded)


def test_the_list_of_methods_needs_neither_torch_nor_scikit_learn():
    code = "import sys, quanet.cli.main as m; sys.argv[1:] = ['methods', '--json', '-q']\ntry: m.run()\n"
    said = run(f"{code}except SystemExit: print(*sorted(sys.modules))")
    listed, loaded = said.rsplit("]", 1)
    assert '"QuaNet"' in listed
    assert not {"torch", "sklearn", "scipy", "numba", "pandas"} & set(loaded.split())


WITHOUT_TORCH = """
import pydoc, sys
class Without:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, *rest):
        return None if name.split(".")[0] == "torch" else self.finder.find_spec(name, *rest)
sys.meta_path = [Without(finder) for finder in sys.meta_path]
import quanet
"""


def test_help_needs_no_torch():
    said = run(WITHOUT_TORCH + "print(pydoc.plain(pydoc.render_doc(quanet)))")
    assert "class EMQ" in said
    assert "class QuaNet" not in said
    left_out = run(WITHOUT_TORCH + "print(*set(quanet.__all__) - set(dir(quanet)))").split()
    assert "QuaNet" in left_out


def test_every_public_name_is_there_and_typed():
    stated = {
        alias.asname
        for node in ast.walk(ast.parse((ROOT / "src/quanet/__init__.py").read_text()))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.asname
    }
    assert stated == set(quanet.__all__) - {"__version__"}
    for name in quanet.__all__:
        assert getattr(quanet, name) is not None
    assert sorted(quanet.__all__) == dir(quanet)
    with pytest.raises(AttributeError, match="has no attribute 'Quapy'"):
        _ = quanet.Quapy  # type: ignore[attr-defined]


def test_the_version_is_said_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == quanet.__version__
    assert f"## {quanet.__version__}" in (ROOT / "CHANGELOG.md").read_text()
