"""What a catalogue says of a method."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class About:
    """Where a method was published, for which classes it is, what it reads, and what a bag costs.

    Parameters
    ----------
    reference : authors and year.
    classes : "two", "any" or "ordered".
    needs : "posteriors", "features" or "text".
    cost : of a bag, in O() of its size n, of the classes k, and of what the method has learnt.
    """

    reference: str
    classes: str
    needs: str
    cost: str
