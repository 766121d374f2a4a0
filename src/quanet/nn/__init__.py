"""Networks: the only room that imports torch."""
