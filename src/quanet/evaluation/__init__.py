"""How well a quantifier does: bags, estimates, errors."""
