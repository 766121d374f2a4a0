"""Files in object storage, with addresses such as ``s3://bucket/reviews/part-1.parquet``, and why they cannot be read.

pyarrow opens s3, gs, abfs and abfss; fsspec opens other schemes, such as memory. Credentials come from the environment,
or are part of the address; messages and answers never show them. The file systems retry what fails for a moment.
"""

import io
import lzma
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from quanet.errors import InvalidData, MissingExtra, QuanetError

ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
QUERY = re.compile(r"\?[\w.-]+=[^\s'\"#]*")  # unlike the ? of a pattern, a name and = follow
IN_AN_ADDRESS = re.compile(rf"([A-Za-z][\w+.-]+://.*?){QUERY.pattern}")
# A password may contain /, although it should be written %2F.
USER = re.compile(r"([A-Za-z][\w+.-]+://)([^/\s]*|[^/\s:@]*:(?!\d+/)[^\s@]*)@")
NATIVE = ("s3", "gs", "gcs", "abfs", "abfss")  # schemes that pyarrow opens itself
AZURE = ("abfs", "abfss")
READ_ERRORS = (OSError, EOFError, zlib.error, lzma.LZMAError)  # raised for truncated and invalid archives
REFUSED = re.compile(
    r"access.?denied|forbidden|\b40[13]\b|invalid_access_key|signature|unauthori[sz]ed|authenticat|credential|permission",
    re.IGNORECASE,
)
UNREACHABLE = re.compile(r"network|curl|resolve|timed? ?out|connect|unavailable|slow_down|\b50[0234]\b", re.IGNORECASE)
# What Google and Azure say around the reason: the steps before it, numbers of requests, the same again.
NOISE = re.compile(
    r"^.*(with a last message of|Azure Error:|\w+ExceptionE:) (\[\] )?"
    r"|\. The request was not sent\b.*?message was"
    r"|:? error_info=.*| Request ?Id:.*| See Azure::.*",
    re.IGNORECASE,
)
REPEATED = re.compile(r"(.{20,}) (?=\1)")
GOOGLE = "GOOGLE_APPLICATION_CREDENTIALS; gs://anonymous@bucket/key for public data"
MICROSOFT = "AZURE_STORAGE_ACCOUNT_KEY, or az login"
KEYS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "gs": GOOGLE,
    "gcs": GOOGLE,
    "abfs": MICROSOFT,
    "abfss": MICROSOFT,
}
CLOUDS = ("AWS_", "AZURE_", "CLOUD_STORAGE_", "GOOGLE_")  # environment variables that file systems read
TAGS = ("ETag", "etag", "LastModified", "last_modified", "created")  # as fsspec calls them
RETRY_SECONDS = 10  # of Google Cloud; the last wait may double it
BUFFER = 2**22  # bytes that one request reads


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


def is_refused(error: BaseException) -> bool:
    """Whether credentials are missing, wrong or not sufficient."""
    return isinstance(error, PermissionError) or REFUSED.search(str(error)) is not None


def read_problem(file: str, error: BaseException) -> str:
    """Why a file cannot be read, and how to fix it: one line that continues its name."""
    scheme = scheme_of(file)
    full = without_credentials(" ".join(str(getattr(error, "strerror", None) or error).split()))
    reason = REPEATED.sub("", NOISE.sub("", full)).rstrip(".")
    if not is_address(file):
        return f"cannot be read: {reason}."
    if "parse URI" in reason:
        return "is not a valid address. Write / and @ in a password as %2F and %40, or set it in the environment."
    if "Protocol not known" in reason:
        return "has an unknown scheme. Choose from file, s3, gs, abfs and those that fsspec knows."
    if is_refused(error):
        keys = f" ({KEYS[scheme]})" if scheme in KEYS else ""
        return f"cannot be read: no permission. Check the credentials{keys} and what they allow: {reason}."
    if UNREACHABLE.search(full):
        endpoint = " and AWS_ENDPOINT_URL" if scheme == "s3" else ""
        return f"cannot be reached. Check the network{endpoint} ({reason})."
    return f"cannot be read: {reason}."


class Stamp(NamedTuple):
    """Size in bytes, and what changes if a file is written again: the time of the last change, or its tag."""

    size: int
    version: int


class _Location(NamedTuple):
    """A file system and a path in it; `key` is the end of the path that the address contains, with text around it."""

    system: Any
    path: str
    key: str
    before: str
    after: str

    def address(self, path: str) -> str:
        """The address of another path of the same file system."""
        return f"{self.before}{path[len(self.path) - len(self.key) :]}{self.after}"


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file in object storage, used like a `Path`. As a string, it is the address without credentials."""

    address: str

    def __str__(self) -> str:
        return without_credentials(self.address)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(QUERY.sub("", self.address)).name

    @property
    def suffix(self) -> str:
        """The end of the name, from the last point on."""
        return PurePosixPath(self.name).suffix

    @property
    def suffixes(self) -> list[str]:
        """All ends of the name."""
        return PurePosixPath(self.name).suffixes

    def exists(self) -> bool:
        """Whether there is a file or folder of this name."""
        return self._info().type.name != "NotFound"

    def is_file(self) -> bool:
        """Whether there is a file of this name."""
        return self._info().type.name == "File"

    def is_dir(self) -> bool:
        """Whether there is a folder of this name."""
        return self._info().type.name == "Directory"

    def stamp(self) -> Stamp:
        """Size and time of the last change. Raises `InvalidData` if the file does not exist."""
        info = self._info()
        if info.type.name == "Directory":
            raise InvalidData(f"{self} is a folder. Pass the files in it, such as '{str(self).rstrip('/')}/*.parquet'.")
        if info.type.name != "File":
            raise InvalidData(_missing(self.address))
        return _stamp(_locate(self.address).system, info)

    def open(self) -> Any:
        """The content, to be read from any position."""
        place = _locate(self.address)
        with explained(self.address):
            file = place.system.open_input_file(place.path)
        return file if self.suffix.lower() == ".parquet" else io.BufferedReader(file, BUFFER)

    def _info(self) -> Any:
        place = _locate(self.address)
        with explained(self.address):
            return place.system.get_file_info(place.path)


def stored_matches(pattern: str) -> dict[str, Stamp]:
    """Addresses of the files that match a pattern, sorted, with size and time. ``**`` is any number of folders."""
    from pyarrow.fs import FileSelector

    place = _locate(pattern)
    steps = place.path.split("/")
    fixed = next(at for at, step in enumerate(steps) if set("*?[") & set(step))
    folder = "/".join(steps[:fixed])
    deep = "**" in steps or fixed < len(steps) - 1
    with explained(pattern):
        found = place.system.get_file_info(FileSelector(folder, recursive=deep, allow_not_found=True))
        files = {info.path: info for info in found if info.is_file}
        if not found and _lacks_bucket(place):
            raise InvalidData(_missing(pattern))
    wanted = sorted(path for path in files if _fits(path.split("/")[fixed:], steps[fixed:]))
    return {place.address(path): _stamp(place.system, files[path]) for path in wanted}


def _fits(names: list[str], steps: list[str]) -> bool:
    """Whether the names of folders and file match the steps of a pattern."""
    if not steps or not names:
        return not names and all(step == "**" for step in steps)
    if steps[0] == "**":
        return any(_fits(names[at:], steps[1:]) for at in range(len(names) + 1))
    hidden = names[0].startswith(".") and not steps[0].startswith(".")
    return not hidden and fnmatchcase(names[0], steps[0]) and _fits(names[1:], steps[1:])


def _stamp(system: Any, info: Any) -> Stamp:
    handler = getattr(system, "handler", None)
    if info.mtime is not None or handler is None:
        return Stamp(info.size or 0, int(info.mtime.timestamp()) if info.mtime else 0)  # lists may have no milliseconds
    known = handler.fs.info(info.path)
    mark = next((known[name] for name in TAGS if known.get(name)), "")
    return Stamp(info.size or 0, int.from_bytes(blake2b(str(mark).encode(), digest_size=6).digest()))


def _locate(address: str) -> _Location:
    """Where an address is. Raises `InvalidData` if it is not valid."""
    scheme, rest = scheme_of(address), address.partition("://")[2]
    after = "".join(QUERY.findall(rest)[:1])
    host, slash, key = QUERY.sub("", rest).partition("/")
    if not host and scheme in NATIVE:
        kind = _bucket(scheme)
        raise InvalidData(f"{without_credentials(address)} names no {kind}. Write {scheme}://{kind}/file.")
    if scheme not in NATIVE:
        return _other_location(address)
    with explained(address):
        environment = tuple(item for item in sorted(os.environ.items()) if item[0].startswith(CLOUDS))
        try:
            system, base = _native_system(_with_environment(scheme, host, after), environment)
        except NotImplementedError:  # pyarrow was built without it
            return _other_location(address)
    key = key.rstrip("/")
    return _Location(system, f"{base.rstrip('/')}/{key}".strip("/"), key, f"{scheme}://{host}{slash}", after)


@lru_cache(maxsize=32)
def _native_system(address: str, _: tuple[tuple[str, str], ...]) -> tuple[Any, str]:
    """The file system of a bucket, and the path of the bucket in it; a new one if the environment has changed."""
    from pyarrow import fs

    with _quiet_azure():
        system, base = fs.FileSystem.from_uri(address)
    parts = urlsplit(address)
    if parts.scheme in AZURE and parts.password:  # which from_uri does not use
        given = dict(parse_qsl(parts.query))
        scheme = "http" if given.get("enable_tls") == "false" else "https"
        own = {name: value for name, value in given.items() if name.endswith("_authority")}
        schemes = {"blob_storage_scheme": scheme, "dfs_storage_scheme": scheme}
        account, key = (parts.hostname or "").partition(".")[0], unquote(parts.password)
        system = fs.AzureFileSystem(account, account_key=key, **schemes, **own)
    return system, base


@contextmanager
def _quiet_azure() -> Iterator[None]:
    """Inside, Azure does not look for a login of ``az`` if it is not installed: the shell would print an error."""
    name = "AZURE_TOKEN_CREDENTIALS"
    if name in os.environ or shutil.which("az"):
        yield
        return
    os.environ[name] = "prod"
    try:
        yield
    finally:
        del os.environ[name]


def _with_environment(scheme: str, host: str, query: str) -> str:
    """The address of a bucket, completed by what pyarrow does not read from the environment itself."""
    if scheme == "s3" and "region=" not in query:
        region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
        own = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
        if region or own or "endpoint_override=" in query:  # else pyarrow asks Amazon for the region
            query += f"{'&' if query else '?'}region={region or 'us-east-1'}"
    if scheme in ("gs", "gcs") and "retry_limit_seconds=" not in query:  # else it tries for a quarter of an hour
        query += f"{'&' if query else '?'}retry_limit_seconds={RETRY_SECONDS}"
    if scheme in AZURE and "@" not in host and "." not in host:
        account = os.environ.get("AZURE_STORAGE_ACCOUNT_NAME")
        if not account:
            raise InvalidData(
                f"{scheme}://{host} names no storage account. "
                f"Write {scheme}://{host}@account.dfs.core.windows.net/file, or set AZURE_STORAGE_ACCOUNT_NAME."
            )
        host = f"{host}@{account}.dfs.core.windows.net"
    key = os.environ.get("AZURE_STORAGE_ACCOUNT_KEY")
    given = ":" in host or "sig=" in query or "credential_kind=" in query
    if scheme in AZURE and key and not given:
        container, _, account = host.rpartition("@")
        host = f"{container}:{quote(key, safe='')}@{account}"
    return f"{'gs' if scheme == 'gcs' else scheme}://{host}{query}"


def _other_location(address: str) -> _Location:
    """Where fsspec finds an address."""
    from pyarrow import fs

    name = without_credentials(address)
    try:
        import fsspec
    except ImportError:
        raise MissingExtra(f"{name} needs fsspec. Install it: pip install 'quanet[cloud]'") from None
    with explained(address):
        try:
            system, path = fsspec.core.url_to_fs(address)
        except ImportError as error:
            reason = without_credentials(str(error)).rstrip(".")
            raise MissingExtra(f"{name}: {reason}. Install it, or: pip install 'quanet[cloud]'") from None
    before = address.removesuffix(path) if address.endswith(path) else f"{scheme_of(address)}://"
    return _Location(fs.PyFileSystem(fs.FSSpecHandler(system)), path, path, before, "")


@contextmanager
def explained(address: str) -> Iterator[None]:
    """Inside, an error of a file system becomes an `InvalidData` of one line, without credentials."""
    try:
        yield
    except QuanetError:
        raise
    except FileNotFoundError:
        raise InvalidData(_missing(address)) from None
    except Exception as error:  # noqa: BLE001 - packages for fsspec raise many kinds
        raise InvalidData(f"{without_credentials(address)} {read_problem(address, error)}") from None


def _missing(address: str) -> str:
    """The message for a file that does not exist, or whose bucket does not."""
    place, name, scheme = _locate(address), without_credentials(address), scheme_of(address)
    with explained(address):
        if not _lacks_bucket(place):
            return f"The file {name} does not exist."
    where = " and AWS_ENDPOINT_URL" if scheme == "s3" else ""
    return f"{name} cannot be read: no {_bucket(scheme)} {place.path.split('/')[0]!r}. Check its name{where}."


def _lacks_bucket(place: _Location) -> bool:
    """Whether there is no such bucket. Credentials that allow to read files may not allow to ask for it."""
    bucket = place.path.split("/")[0]
    if not bucket or scheme_of(place.before) not in NATIVE:
        return False
    try:
        return bool(place.system.get_file_info(bucket).type.name == "NotFound")
    except OSError as error:
        if is_refused(error):
            return False
        raise


def _bucket(scheme: str) -> str:
    return "container" if scheme in AZURE else "bucket"
