"""Encodings of texts: check a name, decode lines, and detect the encoding of a text that is not UTF-8.

To detect it, every common encoding is tried. The right one gives letters of one language in each line: "trčs déçu"
mixes letters of Czech and French, "très déçu" does not.
"""

import io
import re
import warnings
from collections.abc import Iterator
from typing import IO, Any

from quanet.errors import Detected, InvalidData, InvalidSetting

AUTO = "auto"  # the encoding or the delimiter is detected
HEAD = 2**20  # bytes that the encoding is detected from
SAMPLE_TEXT = 'a.b. "C"\n,' + "d" * 100  # any text encoding can write it; encodings of domain names cannot
UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
UTF8_MARK = b"\xef\xbb\xbf"
BYTE_ORDER_MARKS = {  # longer ones first: UTF-32 begins like UTF-16
    b"\xff\xfe\0\0": "utf-32",
    b"\0\0\xfe\xff": "utf-32",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
WESTERN = (  # letters besides a to z: English, French, German, Spanish, Portuguese, Italian, Nordic
    "éèêïçñöüâ",
    "éèêëàâçîïôûùüÿœæ",
    "äöüß",
    "áéíóúñüªº",
    "ãõáéíóúâêôçàü",
    "àèéìòù",
    "åäöæøéð",
)
CENTRAL = (  # Polish, Czech and Slovak, Hungarian, Romanian, Croatian and Slovenian
    "ąćęłńóśźż",
    "áčďéěíĺľňóôŕřšťúůýžä",
    "áéíóöőúüű",
    "ăâîşţ",
    "čćđšž",
)
CYRILLIC = ("оеаинтсрвлкмдпуяыьгзбчйхжшюцщэфъё", "оаинвтерсікулдмпзяьбгйчхцжшюєїщфґ")  # the most frequent first
LANGUAGES: dict[str, tuple[str, ...]] = {  # letters by encoding; earlier encodings win ties
    "cp1252": WESTERN,
    "cp1250": CENTRAL,
    "cp1251": CYRILLIC,
    "koi8-u": CYRILLIC,
    "cp866": CYRILLIC,
    "cp1253": ("αοιετσνηυρπκμλςωόάδίγέθήύχφώβξζψϊϋΐΰ",),
    "cp1254": ("çğıöşüâîû",),
    "cp1255": ("יוהלאמרתבשנםעדקחכפטגצזןסךףץ",),
    "cp1256": ("اليمنوربتعدسفهكقأحةجشصىخطذإضئزثءغظؤآپچژگ،؟",),
    "cp1257": ("āčēģīķļņšūž", "ąčęėįšųūž"),
    "iso8859-2": CENTRAL,
    "iso8859-15": WESTERN,
    "mac-roman": WESTERN,
    "cp850": WESTERN,
    "cp852": CENTRAL,
}
# Pairs of bytes that are frequent characters: syllables, punctuation, the more frequent half of Chinese characters.
PAIRS = {
    "cp932": rb"\x82[\x9f-\xf1]|\x83[\x40-\x96]|\x81[\x40-\x5b]|[\x88-\x97][\x40-\xfc]",
    "euc_jp": rb"\xa4[\xa1-\xf3]|\xa5[\xa1-\xf6]|\xa1[\xa1-\xbc]|[\xb0-\xcf][\xa1-\xfe]",
    "cp949": rb"[\xb0-\xc8][\xa1-\xfe]|\xa1[\xa1-\xbf]",
    "gb18030": rb"[\xb0-\xd7][\xa1-\xfe]|\xa1[\xa1-\xbf]|\xa3[\xa1-\xfe]",
    "big5": rb"[\xa4-\xc6][\x40-\x7e\xa1-\xfe]|\xa1[\x40-\xbf]",
}
KANA = {"cp932": rb"\x82[\x9f-\xf1]|\x83[\x40-\x96]", "euc_jp": rb"\xa4[\xa1-\xf3]|\xa5[\xa1-\xf6]"}
PUNCTUATION = "’‘“”–—…€£°«»¿¡•™®©\u00a0´№"  # noqa: RUF001
OPENING = "‚„"  # noqa: RUF001 # low quotes, which follow no letter
RARE = 0.5  # how much a letter of the rarer half of an alphabet that is not Latin counts
MIN_SCORE = 0.85  # share of characters that fit; with less, the encoding is unknown
MAX_LINES = 300  # with other characters than ASCII
NOT_ASCII = re.compile(rb"[\x80-\xff]")


def check_encoding(encoding: str) -> str:
    """The name of a text encoding, or "auto". Raises `InvalidSetting` if it is unknown."""
    try:
        if encoding == AUTO or SAMPLE_TEXT.encode(encoding).decode(encoding) == SAMPLE_TEXT:
            return encoding
    except (LookupError, ValueError):  # unknown, or not an encoding of text
        pass
    raise InvalidSetting(f"Unknown encoding {encoding!r}. Common ones are utf-8, utf-16, latin-1 and cp1252.")


def decoded_lines(stream: Any, encoding: str, name: str, first: int = 1) -> Iterator[str]:
    """Decoded lines, of which the first has this number. Raises `InvalidData` for a line that cannot be decoded."""
    if "\n,".encode(encoding) != b"\n,":  # a line break takes several bytes, as in UTF-16
        yield from _wide_lines(stream, encoding, name)
        return
    for number, line in enumerate(stream, first):
        if number == 1:
            if line.startswith(UTF16_MARKS):
                raise InvalidData(f"{name} is UTF-16, not {encoding}. Add --encoding utf-16.")
            line = line.removeprefix(UTF8_MARK)  # noqa: PLW2901
        try:
            yield line.decode(encoding)
        except UnicodeDecodeError as error:
            around = line[max(0, error.start - 20) : error.end + 20].decode(encoding, errors="replace").strip()
            raise InvalidData(
                f"{name}, line {number}: {around!r} is not valid {encoding} (byte {line[error.start]:#04x}). "
                "Specify the encoding, such as --encoding latin-1, cp1252 or utf-16."
            ) from None


def _wide_lines(stream: IO[bytes], encoding: str, name: str) -> Iterator[str]:
    """Decoded lines of an encoding in which a line break takes several bytes."""
    number = 0
    decoded = io.TextIOWrapper(stream, encoding=encoding, newline="")
    try:
        for line in decoded:
            number += 1
            yield line
    except UnicodeError as error:
        reason = getattr(error, "reason", error)
        raise InvalidData(
            f"{name}, after line {number}: not valid {encoding} ({reason}). Specify the encoding: --encoding."
        ) from None
    finally:
        if not stream.closed:
            decoded.detach()  # the caller closes the stream


def detect_encoding(head: bytes, name: str) -> str:
    """The encoding of a file that begins with these bytes and is not plain UTF-8. A warning reports it.

    Raises `InvalidData` if it cannot be detected.
    """
    found, shown = _wide(head), ""
    if not found:
        whole = head if len(head) < HEAD else head[: head.rfind(b"\n")] or head  # the last line may be cut
        lines = [line for line in whole.splitlines() if NOT_ASCII.search(line)][:MAX_LINES]
        if not lines or b"\0" in head:
            raise InvalidData(f"{name} is not text. Is it another format under a wrong name? If not, use --encoding.")
        scores = sorted(((score, encoding) for encoding, score in _scores(lines)), key=lambda one: -one[0])
        if not scores or scores[0][0] < MIN_SCORE:
            likely = " or ".join(f"--encoding {encoding}" for _, encoding in scores[:2]) or "--encoding"
            raise InvalidData(f"The encoding of {name} cannot be detected; it is not UTF-8. Specify it: {likely}.")
        found = scores[0][1]
        shown = f", as in {_example(lines[0], found)!r}"
    message = f"{name}: encoding {found} (detected{shown}). If this is wrong, specify it with --encoding."
    warnings.warn(Detected(message), stacklevel=2)
    return found


def _wide(head: bytes) -> str:
    """An encoding with several bytes per letter, from its mark or from zero bytes; or an empty string."""
    for mark, encoding in BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            return encoding
    even, odd = head[0::2].count(0), head[1::2].count(0)
    most = 0.3 * len(head) / 2
    if odd > most and not even:
        return "utf-16-le"
    return "utf-16-be" if even > most and not odd else ""


def _scores(lines: list[bytes]) -> Iterator[tuple[str, float]]:
    """The share of characters that fit, for every encoding that can decode the lines."""
    whole = b"\n".join(lines)
    for encoding, languages in LANGUAGES.items():
        try:
            texts = whole.decode(encoding).split("\n")
        except UnicodeDecodeError:
            continue
        yield encoding, sum(_fit(text, languages) for text in texts) / len(NOT_ASCII.findall(whole))
    for encoding, frequent in PAIRS.items():
        try:
            whole.decode(encoding)
        except UnicodeDecodeError:
            continue
        pairs = re.sub(rb"[\x00-\x7f]*([\x80-\xff].)", rb"\1", whole, flags=re.DOTALL)
        found = [pairs[at : at + 2] for at in range(0, len(pairs), 2)]
        if encoding in KANA and sum(bool(re.match(KANA[encoding], pair)) for pair in found) < 0.2 * len(found):
            continue
        yield encoding, sum(bool(re.match(frequent, pair)) for pair in found) / len(found)


def _fit(text: str, languages: tuple[str, ...]) -> float:
    """How many characters of a line belong to the language of most of them, or are punctuation."""
    letters, others = [], 0
    latin = languages[0][0] < "\u0370"
    around = f" {text} "
    for at in range(1, len(around) - 1):
        character = around[at]
        if character.isascii():
            continue
        before, after = around[at - 1], around[at + 1]
        if character.isalpha():
            # Inside a word in lower case, no letter is a capital; no word has letters of two scripts.
            capital = character.isupper() and before.islower()
            mixed = not latin and any(other.isascii() and other.isalpha() for other in (before, after))
            if not capital and not mixed:
                letters.append(character.lower())
        elif character in PUNCTUATION or (character in OPENING and not before.isalpha()):
            others += 1
    if latin:
        return others + max(sum(letter in language for letter in letters) for language in languages)
    counts = [sum(_frequency(letter, language) for letter in letters) for language in languages]
    return others + max(counts)


def _frequency(letter: str, alphabet: str) -> float:
    """1 for a letter of the first half of an alphabet, which is sorted by frequency; less for the others."""
    at = alphabet.find(letter)
    return 0.0 if at < 0 else 1.0 if at < len(alphabet) / 2 else RARE


def _example(line: bytes, encoding: str) -> str:
    """The first word with a letter that is not ASCII."""
    words = line.decode(encoding, errors="replace").replace(",", " ").replace(";", " ").split()
    return next((word.strip("\"'.!?")[:30] for word in words if not word.isascii()), "")
