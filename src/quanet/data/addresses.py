"""Addresses of files, such as ``s3://bucket/a.csv``, and how they are shown: without credentials."""

import re
from urllib.parse import unquote

ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
QUERY = re.compile(r"\?[\w.-]+=[^\s'\"#]*")  # unlike the ? of a pattern, a name and = follow
IN_AN_ADDRESS = re.compile(rf"([A-Za-z][\w+.-]+://.*?){QUERY.pattern}")
# A password may contain /, although it should be written %2F.
USER = re.compile(r"([A-Za-z][\w+.-]+://)([^/\s]*|[^/\s:@]*:(?!\d+/)[^\s@]*)@")
NATIVE = ("s3", "gs", "gcs", "abfs", "abfss")  # schemes that pyarrow opens itself
AZURE = ("abfs", "abfss")


def is_address(file: str) -> bool:
    """Whether a name is the address of a file that is not on this machine.

    Examples
    --------
    >>> is_address("s3://bucket/a.csv"), is_address("file:///home/a.csv"), is_address("a.csv")
    (True, False, False)
    """
    found = ADDRESS.match(file)
    return found is not None and found[1].lower() != "file"


def scheme_of(address: str) -> str:
    """The scheme of an address, in lower case."""
    return address.partition("://")[0].lower()


def plain_name(file: str) -> str:
    """The name of a local file in place of a ``file://`` address; other names as they are.

    Examples
    --------
    >>> plain_name("file:///home/my%20data/a.csv")
    '/home/my data/a.csv'
    """
    if not file.lower().startswith("file://"):
        return file
    return unquote(file[len("file://") :].removeprefix("localhost"))


def without_credentials(text: str) -> str:
    """The same text, in which addresses have no user, password or query.

    Examples
    --------
    >>> without_credentials("s3://key:secret@bucket/a.csv?session_token=xyz cannot be read")
    's3://bucket/a.csv cannot be read'
    """
    return IN_AN_ADDRESS.sub(r"\1", USER.sub(_user, text)) if "://" in text else text


def _user(found: "re.Match[str]") -> str:
    container = found[2].partition(":")[0] if found[1].lower().rstrip(":/") in AZURE else ""
    return f"{found[1]}{container}@" if container else found[1]
