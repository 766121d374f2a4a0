"""The house's rules that import-linter does not see."""

import ast
import subprocess
import sys
import tomllib
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import pytest

import quanet

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "quanet"
FILES = sorted(SOURCE.rglob("*.py"))
DOORS = {
    "numba": "kernels/",
    "matplotlib": "report/charts/",
    "torch": "nn/",
    "sentence_transformers": "nn/",
    "transformers": "nn/",
    "jinja2": ("report/", "serve/web/pages/"),
    "ray": "corpus/ray_data.py",
    "pyspark": "corpus/spark_sql.py",
    "skops": "persist/",
    "safetensors": ("persist/", "nn/share_reader.py", "nn/pretrain.py"),
    "openpyxl": "data/workbooks.py",
    "duckdb": "data/databases.py",
    "fastapi": "serve/web/",
    "starlette": "serve/web/",
    "pydantic": "serve/web/",
    "itsdangerous": "serve/web/",
    "prometheus_client": "serve/web/",
    "python_multipart": "serve/web/",
    "uvicorn": "serve/supervisor.py",
    "sqlalchemy": "serve/store/",
    "alembic": "serve/store/",
    "httpx": "client.py",
}


@cache
def nodes():
    """Imports and classes of each file."""
    kinds = ast.Import | ast.ImportFrom | ast.ClassDef
    trees = {file.relative_to(SOURCE).as_posix(): ast.walk(ast.parse(file.read_text())) for file in FILES}
    return {place: [node for node in tree if isinstance(node, kinds)] for place, tree in trees.items()}


def imports(found):
    for node in found:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def test_a_heavy_dependency_has_one_door():
    for place, tree in nodes().items():
        for name in imports(tree):
            assert name not in DOORS or place.startswith(DOORS[name]), f"{place} imports {name}"


def test_every_import_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["dependencies"] + [one for extra in project["optional-dependencies"].values() for one in extra]
    declared = {one.split(">")[0].split("=")[0].split("[")[0] for one in wanted}
    names = {"sklearn": "scikit-learn"}
    for place, tree in nodes().items():
        for name in imports(tree):
            assert name in sys.stdlib_module_names or names.get(name, name.replace("_", "-")) in declared, (
                f"{place}: {name}"
            )


def test_no_file_is_longer_than_600_lines():
    lengths = {file.name: len(file.read_text().splitlines()) for file in FILES}
    assert not {name: length for name, length in lengths.items() if length > 600}


def test_every_door_is_a_dependency_that_something_imports():
    used = {name for tree in nodes().values() for name in imports(tree)}
    assert set(DOORS) <= used


def test_at_most_twelve_modules_are_at_the_root():
    # Named as users look for them: quanet.ray.predict, quanet.spark.predict, quanet.client.Client.
    doors = {"ray.py", "spark.py", "client.py"}
    found = [file.name for file in FILES if file.parent.name == "quanet" and not file.name.startswith("__")]
    root = [name for name in found if name not in doors]
    assert len(root) <= 12, root


# A verb has one name in workflows, report and cli, and in what computes it.
VERBS = {
    "fit",
    "predict",
    "diff",
    "evaluate",
    "compare",
    "check",
    "label",
    "refine",
    "correct",
    "monitor",
    "merge",
    "diagnose",
    "experiment",
    "info",
    "methods",
    "datasets",
    "demo",
    "worker",
}


def test_no_two_modules_share_a_name():
    names = Counter(file.stem for file in FILES if not file.name.startswith("__"))
    assert {name for name, number in names.items() if number > 1} <= VERBS


def test_no_two_classes_share_a_name():
    found = defaultdict(set)
    for place, tree in nodes().items():
        for node in tree:
            if isinstance(node, ast.ClassDef):
                found[node.name].add(place)
    assert not {name: files for name, files in found.items() if len(files) > 1}


def test_private_members_stay_private():
    # Trees of scikit-learn have no public way to be checked before they are followed, and torch none to draw gamma
    # variates from a given generator.
    waivers = [file.name for file in FILES if "SLF001" in file.read_text()]
    assert set(waivers) <= {"trust.py", "simulator.py"}


def run(code, *arguments):
    return subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True).stdout


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
    def __getattr__(self, name):
        return getattr(self.finder, name)
    def find_spec(self, name, *rest):
        return None if name.split(".")[0] == "torch" else self.finder.find_spec(name, *rest)
sys.meta_path = [Without(finder) for finder in sys.meta_path]
import quanet
"""


def test_help_needs_no_torch():
    show = "print(*set(quanet.__all__) - set(dir(quanet)))\nprint(pydoc.plain(pydoc.render_doc(quanet)))"
    left_out, _, said = run(WITHOUT_TORCH + show).partition("\n")
    assert {"DeepSets", "LSTMClassifier"} <= set(left_out.split())
    assert "class EMQ" in said
    assert "class QuaNet" in said
    assert "class DeepSets" not in said


READS_WITH = """
import sys
from quanet.corpus.model_inputs import ModelFiles
quantifier = ModelFiles.of(sys.argv[1], travel=False).quantifier()
quantifier.predict(["a good one", "so bad"])
print("torch" in sys.modules)
"""


def test_a_worker_imports_torch_only_for_a_model_with_a_network(tmp_path):
    texts = [f"{word} {thing}" for thing in range(20) for word in ("good", "bad")]
    network = quanet.DeepSets(cv=2, max_epochs=1, device="cpu", random_state=0)
    for quantifier, needed in ((quanet.QuaNet(cv=2), False), (network, True)):
        quanet.save(quantifier.fit(texts, ["pos", "neg"] * 20), tmp_path / str(needed))
        assert run(READS_WITH, tmp_path / str(needed)).split() == [str(needed)]
    code = f"""
try: quanet.load({str(tmp_path / "True")!r})
except quanet.QuanetError as error: print(type(error).__name__, error)
"""
    assert run(WITHOUT_TORCH + code).startswith("MissingExtra DeepSets needs PyTorch")


def test_every_public_name_exists_and_is_listed_once():
    stub = ast.parse((ROOT / "src/quanet/__init__.pyi").read_text())
    aliases = [alias for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert all(alias.asname == alias.name for alias in aliases)  # what a type checker takes for public
    names = [alias.name for alias in aliases]
    assert sorted(names) == sorted(set(quanet.__all__) - {"__version__"})
    for name in quanet.__all__:
        assert getattr(quanet, name) is not None
    assert sorted(quanet.__all__) == dir(quanet)
    with pytest.raises(AttributeError, match="has no attribute 'Quapy'"):
        _ = quanet.Quapy


def test_a_missing_extra_is_named():
    for name in ("DeepSets", "QuaNet.paper"):
        code = f"try: quanet.{name}()\nexcept quanet.QuanetError as error: print(type(error).__name__, error)"
        assert run(WITHOUT_TORCH + code).startswith(f"MissingExtra {name} needs PyTorch")


def test_quanet_needs_no_torch():
    code = (
        "print(quanet.QuaNet('precomputed').fit([[0.9, 0.1], [0.2, 0.8]] * 20, [0, 1] * 20).predict([[0.9, 0.1]] * 9))"
    )
    assert float(run(WITHOUT_TORCH + code).strip("[ \n").split()[0]) > 0.99


def test_the_version_is_said_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == quanet.__version__
    assert f"## {quanet.__version__}" in (ROOT / "CHANGELOG.md").read_text()
