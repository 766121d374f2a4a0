"""Guess the language of a text: by its script, or by frequent words of ten languages in Latin script.

It is meant for a look at a table, not for single texts: short texts often have no frequent word, and are then unknown.
"""

import re

UNKNOWN = "unknown"
# Words that are frequent in one of the languages, and rare in the others.
FREQUENT = {
    "English": "the and of is was it this that with for you not have are but they very my would just were",
    "German": "der die das und ist nicht ich mit ein eine den auf für sehr aber war auch von dem sich",
    "French": "le les et est une pas pour que dans qui je avec sur mais très des du ce cette sont",
    "Spanish": "el los las es una por con para pero muy que del lo se más como este esta son fue",
    "Portuguese": "o os uma não com para muito mas do da que em é foi são mais por isso você eu",
    "Italian": "il gli è una non con per che di molto ma della sono questo questa più nel anche era ho",
    "Dutch": "het een en van niet ik dat voor met zijn maar ook heel deze heb naar wel goed geen bij",
    "Polish": "nie jest się na że do to jak ale bardzo dla przez tak był była od tylko są po już",
    "Swedish": "och att det är en som för inte på jag med av till den har mycket men var ett om",
    "Turkish": "ve bir bu çok için ile ama ben da de daha gibi olarak var yok ne kadar değil en her",
}
LANGUAGES_OF: dict[str, frozenset[str]] = {}
for _language, _words in FREQUENT.items():
    for _word in _words.split():
        LANGUAGES_OF[_word] = LANGUAGES_OF.get(_word, frozenset()) | {_language}
SCRIPTS = {
    "Japanese": re.compile(r"[\u3040-\u30ff]"),  # before Chinese, whose characters it uses
    "Korean": re.compile(r"[\uac00-\ud7af]"),
    "Chinese": re.compile(r"[\u4e00-\u9fff]"),
    "Russian or another language in Cyrillic": re.compile(r"[\u0400-\u04ff]"),
    "Greek": re.compile(r"[\u0370-\u03ff]"),
    "Arabic or Persian": re.compile(r"[\u0600-\u06ff]"),
    "Hebrew": re.compile(r"[\u0590-\u05ff]"),
    "Hindi or another language in Devanagari": re.compile(r"[\u0900-\u097f]"),
    "Thai": re.compile(r"[\u0e00-\u0e7f]"),
}
LETTERS = re.compile(r"[^\W\d_]+")
OF_SCRIPT = 0.3  # share of the letters that decides; words of other languages occur in all
MAX_LETTERS = 2000  # characters of a text that are looked at


def guess_language(text: str) -> str:
    """The language of a text, or "unknown".

    Examples
    --------
    >>> guess_language("This is the best film I have seen"), guess_language("Das ist nicht gut")
    ('English', 'German')
    >>> guess_language("とても良い商品です"), guess_language("ok 5/5")
    ('Japanese', 'unknown')
    """
    words = LETTERS.findall(text[:MAX_LETTERS].lower())
    if not text.isascii():
        letters = sum(map(len, words))
        for language, pattern in SCRIPTS.items():
            if len(pattern.findall(text[:MAX_LETTERS])) > OF_SCRIPT * letters:
                return language
    hits: dict[str, float] = {}
    for word in words:
        languages = LANGUAGES_OF.get(word, frozenset())
        for language in languages:  # a word of several languages says less
            hits[language] = hits.get(language, 0.0) + 1 / len(languages)
    best = sorted(hits, key=lambda language: -hits[language])[:2]
    enough = best and hits[best[0]] >= (2 if len(words) > 4 else 1)
    return best[0] if enough and (len(best) == 1 or hits[best[0]] > 1.5 * hits[best[1]]) else UNKNOWN
