"""What the catalogue says of a method."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class About:
    """A method's entry in the catalogue.

    Attributes
    ----------
    reference : the publication it comes from.
    classes : "two", "any" or "ordered".
    needs : what it reads of an instance: "posteriors", "features" or "text".
    cost : of one bag of n instances and k classes, such as "O(n k)".

    Examples
    --------
    >>> About(reference="Forman (2008)", classes="any", needs="posteriors", cost="O(n k)").classes
    'any'
    """

    reference: str
    classes: str
    needs: str
    cost: str
