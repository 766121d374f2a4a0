"""The facts about a method, stated once: the catalogue lists them and `fit` enforces them."""

from dataclasses import dataclass
from typing import Any

from quanet.errors import InvalidData

# The families, in the order in which lists show them.
FAMILIES = (
    "baseline",
    "counting",
    "thresholds",
    "likelihood",
    "weights",
    "matching",
    "svm",
    "words",
    "ordered",
    "networks",
    "composed",
)


@dataclass(frozen=True, slots=True)
class About:
    """The facts about a method: its entry in the catalogue.

    Attributes
    ----------
    family : one of `FAMILIES`.
    reference : the publication that introduced it.
    classes : the classes it accepts: "two", "any" (two or more) or "ordered".
    needs : what it reads of an instance: "posteriors", "features", "text" or "nothing".
    cost : of one bag of n instances and k classes, such as "O(n k)".

    Examples
    --------
    >>> About("counting", "Forman (2008)", classes="any", needs="posteriors", cost="O(n k)").classes
    'any'
    """

    family: str
    reference: str
    classes: str
    needs: str
    cost: str

    def check_classes(self, quantifier: Any) -> None:
        """Raise `InvalidData` unless the method accepts the classes of the training data; `fit` calls this.

        A method for ordered classes gets `ladder_`, the positions of its classes from the lowest to the highest.
        One that does not use the order has ``needs_order = False``.
        """
        name, classes = type(quantifier).__name__, quantifier.classes_
        if self.classes == "two" and len(classes) > 2:
            raise InvalidData(
                f"{name} is for two classes, but y has {len(classes)}, such as {classes.tolist()[:3]}. "
                f"Compare each class with the rest: OneVsRest({name}())."
            )
        if self.classes == "ordered" and getattr(quantifier, "needs_order", True):
            from quanet.methods.order import ladder_of  # not above: listing the methods does not need NumPy

            quantifier.ladder_ = ladder_of(classes, quantifier.order, name)
