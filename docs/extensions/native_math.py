"""Formulas as MathML, which browsers show themselves: no script and no network."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util.math import get_node_equation_number


def _mathml(node: Any, display: str) -> str:
    try:
        formula = convert(node.astext().replace(r"\arg", r"\operatorname{arg}"), display=display)
    except Exception as error:
        raise ValueError(f"{node.source}, line {node.line}: this formula is not LaTeX: {node.astext()!r}") from error
    return re.sub(r"(<mi>(?:log|ln|exp)</mi>)", r'\1<mspace width="0.17em"/>', formula)


def visit_math(self: Any, node: Any) -> None:
    """A formula in a line."""
    self.body.append(f'<span class="math">{_mathml(node, "inline")}</span>')
    raise nodes.SkipNode


def visit_math_block(self: Any, node: Any) -> None:
    """A formula of its own."""
    number = f'<span class="eqno">({get_node_equation_number(self, node)})</span>' if node.get("number") else ""
    name = f' id="equation-{node["label"]}"' if node.get("label") else ""
    self.body.append(f'<div class="math"{name}>{number}{_mathml(node, "block")}</div>')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.add_html_math_renderer("mathml", (visit_math, None), (visit_math_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
