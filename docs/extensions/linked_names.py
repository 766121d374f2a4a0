"""The first mention of a public name in a paragraph, written as `EMQ`, leads to its page of the reference."""

from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.transforms import SphinxTransform

import quanet

PARTS = (nodes.paragraph, nodes.entry, nodes.list_item)


class LinkedNames(SphinxTransform):
    """Replaces literals by references, which the Python domain resolves."""

    default_priority = 400

    def apply(self, **_: Any) -> None:
        """Change one page."""
        if self.env.docname.startswith(("reference/api/", "changelog", "decisions/", "experiments/")):
            return
        for literal in list(self.document.findall(nodes.literal)):
            name = literal.astext().removeprefix("quanet.").removesuffix("()")
            part = _part(literal)
            if name not in quanet.MODULE_OF or part is None or name in part.get("linked_names", []):
                continue
            part["linked_names"] = [*part.get("linked_names", []), name]
            reference = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=f"quanet.{name}", refexplicit=True, refwarn=True
            )
            reference["refdoc"] = self.env.docname
            literal.replace_self(reference)
            reference += literal


def _part(literal: nodes.Node) -> Any:
    """The paragraph of a literal; None if it is part of a link or heading."""
    node = literal.parent
    while node is not None:
        if isinstance(node, nodes.reference | addnodes.pending_xref | nodes.title):
            return None
        if isinstance(node, PARTS):
            return node
        node = node.parent
    return None


def setup(app: Any) -> dict[str, bool]:
    """Connect to Sphinx."""
    app.add_transform(LinkedNames)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
