"""Whether a page shows what a command prints: the same words in the same order, and numbers up to the last digits."""

import re

NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?")
MARK = "\x00"  # in place of a number
TIME = re.compile(r"\b(?:\d+ h )?(?:\d+ min )?\d+ s\b")
RULE = re.compile("─+")
OMITTED = "..."


def missing_line(shown, printed):
    """The first line of a page that was not printed after the lines above it; None if there is none."""
    words, numbers = _words_and_numbers(printed)
    start = 0
    for line in shown:
        for part in line.split(OMITTED):
            wanted, values = _words_and_numbers(part)
            at = words.find(wanted, start)
            while at >= 0 and not _close(values, numbers[words.count(MARK, 0, at) :]):
                at = words.find(wanted, at + 1)
            if at < 0:
                return line
            start = at + len(wanted)
    return None


def _words_and_numbers(text):
    """A text in one line with marks for its numbers, and these numbers; times and rules are all the same."""
    text = RULE.sub("─", TIME.sub("some time", text.replace(MARK, " ")))
    return " ".join(NUMBER.sub(MARK, text).split()), NUMBER.findall(text)


def _close(shown, found):
    """Whether numbers differ by at most 2 %, or by half a point or five units of the last digit, whichever is less."""
    for one, other in zip(shown, found, strict=False):
        digits = len(one.partition(".")[2])
        first, second = (float(number.replace(",", "")) for number in (one, other))
        if abs(first - second) > max(0.02 * first, min(0.5, 5.001 * 10.0**-digits)):
            return False
    return True
