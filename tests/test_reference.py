"""The reference: every public name describes its parameters and has an example; methods and metrics have a formula
and a source, too. A test lists all names that lack something."""

import inspect
import re

import quanet

SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)

# What a name does without, and why.
NO_DOCSTRING = {"__version__": "a string", "METRICS": "a dictionary, described by a comment"}
NO_EXAMPLE: dict[str, str] = {}
NO_SOURCE = {"AutoQuantifier": "new in quanet", "bias": "a difference"}

NAMES = sorted(set(quanet.__all__) - set(NO_DOCSTRING))


def docstring(name):
    return inspect.getdoc(getattr(quanet, name)) or ""


def sections(name):
    """The sections of a docstring by title; what stands before the first is at ''."""
    parts = SECTION.split(docstring(name))
    return dict(zip(["", *parts[1::2]], parts[0::2], strict=True))


def described(name):
    """The names that the section of parameters describes, in its order."""
    found = sections(name)
    # Values that quanet returns have attributes instead: nobody calls their constructors.
    lines = (found.get("Parameters") or found.get("Attributes") or "").splitlines()
    heads = [line.partition(" : ")[0] for line in lines if line and not line[0].isspace()]
    return [one.strip().lstrip("*") for head in heads for one in head.split(",")]


def accepted(name):
    """The parameters of a function or of a class's constructor, and whether it passes on others."""
    thing = getattr(quanet, name)
    if isinstance(thing, type) and issubclass(thing, BaseException | Warning):
        return [], True
    parameters = inspect.signature(thing).parameters.values()
    open_ended = [one for one in parameters if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD)]
    return [one.name for one in parameters if one not in open_ended], bool(open_ended)


def parameters_differ(name):
    names, (wanted, open_ended) = described(name), accepted(name)
    exact = "Parameters" in sections(name) and not open_ended
    return (names if exact else names[: len(wanted)]) != wanted


def is_method_or_metric(name):
    thing = getattr(quanet, name)
    is_method = isinstance(thing, type) and issubclass(thing, quanet.Quantifier) and thing.about is not None
    return is_method or any(metric.function is thing for metric in quanet.METRICS.values())


def uncited(name):
    """The sources without a citation and the citations without a source."""
    found = sections(name)
    sources = set(re.findall(r"^\.\. \[(\d+)\] ", found.pop("References", ""), re.MULTILINE))
    return sources ^ set(re.findall(r"\[(\d+)\]_", "".join(found.values())))


def test_every_parameter_is_described_in_the_order_of_the_signature():
    wrong = [f"{name}: {described(name)}, not {accepted(name)[0]}" for name in NAMES if parameters_differ(name)]
    assert not wrong, "\n".join(wrong)


def test_every_name_has_an_example():
    without = {name for name in NAMES if ">>>" not in sections(name).get("Examples", "")}
    assert without == set(NO_EXAMPLE), sorted(without)


def test_methods_and_metrics_have_a_formula():
    assert not {name for name in NAMES if is_method_or_metric(name) and ".. math::" not in docstring(name)}


def test_methods_and_metrics_have_a_source():
    without = {name for name in NAMES if is_method_or_metric(name) and "References" not in sections(name)}
    assert without == set(NO_SOURCE)


def test_every_source_is_cited_in_the_text():
    assert not {name: uncited(name) for name in NAMES if uncited(name)}


def test_no_section_is_there_twice():
    assert not {name for name in NAMES if len(sections(name)) < len(SECTION.findall(docstring(name))) + 1}


def test_formulas_are_in_raw_docstrings():
    assert not {name for name in NAMES if re.search(r"[\a\b\f\v\t\r]", docstring(name))}


def test_exceptions_are_public_names():
    assert set(quanet.__all__) >= {*NO_DOCSTRING, *NO_EXAMPLE, *NO_SOURCE}
