"""Names that users give: only ever shown, never part of a path."""

import re

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]")


def clean_title(text: str, length: int = 200) -> str:
    r"""A name on one line, without characters that control a terminal or change the direction of text.

    Examples
    --------
    >>> clean_title(" a\x00b\u202ecsv  ")
    'abcsv'
    """
    return CONTROL.sub("", text).strip()[:length].strip()


def clean_file_name(text: str) -> str:
    r"""The last part of a file's name, as browsers send it.

    Examples
    --------
    >>> clean_file_name("C:\\data\\..\\new.csv"), clean_file_name("../../etc/passwd"), clean_file_name("..")
    ('new.csv', 'passwd', 'upload')
    """
    name = clean_title(re.split(r"[/\\]", text)[-1])
    return name if name.strip(".") else "upload"
