"""Colours of reports: one palette for light pages and paper, one for dark pages, with the same names.

The series are Okabe and Ito's hues, which colour-blind readers can distinguish, dark or light enough to be read
as text: every colour of words and lines has a contrast of at least 4.5 to its page (WCAG 2.2, AA).
"""

LIGHT = {
    "paper": "#ffffff",
    "raised": "#f4f6f8",
    "ink": "#1a2027",
    "muted": "#56606b",
    "rule": "#d5dae0",
    "blue": "#0a62a6",
    "vermilion": "#b3430b",
    "green": "#00735a",
    "purple": "#93427e",
    "ochre": "#805a00",
    "teal": "#0f7285",
    "ok": "#1b7340",
    "note": "#0a5fa3",
    "warning": "#8f5600",
    "alarm": "#b3261e",
}
DARK = {
    "paper": "#12161b",
    "raised": "#1b2129",
    "ink": "#e8ecf0",
    "muted": "#a5afba",
    "rule": "#39424d",
    "blue": "#6fb5f0",
    "vermilion": "#f4905c",
    "green": "#4fc8a0",
    "purple": "#dc9bcb",
    "ochre": "#dcb24a",
    "teal": "#71cbdc",
    "ok": "#5fcb8b",
    "note": "#74b7f1",
    "warning": "#e5b04e",
    "alarm": "#ff8f85",
}
SERIES = ("blue", "vermilion", "green", "purple", "ochre", "teal")


def contrast(first: str, second: str) -> float:
    """Contrast of two colours, 1 to 21 (WCAG 2.2, relative luminance).

    Examples
    --------
    >>> contrast("#000000", "#ffffff"), contrast("#777777", "#777777")
    (21.0, 1.0)
    """
    low, high = sorted(map(_luminance, (first, second)))
    return (high + 0.05) / (low + 0.05)


def _luminance(colour: str) -> float:
    parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
