"""Settings of the service: where it listens, who may do what, and its limits."""

from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from quanet.errors import InvalidSetting

MEGABYTE = 2**20
LOOPBACK = ("localhost", "127.0.0.1", "[::1]")  # names that a browser on this machine uses


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceSettings:
    """Settings of the service.

    Attributes
    ----------
    host, port : address that it listens on.
    public_url : address that visitors use, if a reverse proxy forwards requests; "" otherwise.
    insecure : nobody signs in, at any address.
    upload_bytes, rows, seconds : limits of a file, and of a job.
    projects, batches : how many projects there may be, and how many batches in each.
    requests_per_minute : of each visitor.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    public_url: str = ""
    insecure: bool = False
    upload_bytes: int = 512 * MEGABYTE
    rows: int = 5_000_000
    seconds: float = 3600.0
    projects: int = 1_000
    batches: int = 100_000
    requests_per_minute: int = 1_200

    @property
    def loopback(self) -> bool:
        """Whether only this machine can connect."""
        return is_loopback(self.host)

    @property
    def sign_in(self) -> bool:
        """Whether visitors need a token."""
        return not self.insecure and (not self.loopback or bool(self.public_url))

    @property
    def https(self) -> bool:
        """Whether visitors connect with HTTPS, so that cookies can be limited to it."""
        return self.public_url.startswith("https://")

    @property
    def hosts(self) -> frozenset[str] | None:
        """Values of the Host header that are answered, without the port; None for all.

        A web page elsewhere may give its own name the address of this machine (DNS rebinding), so on loopback other
        names are refused.
        """
        if self.public_url:
            return frozenset({_host_of(self.public_url), *LOOPBACK})
        return frozenset(LOOPBACK) if self.loopback else None

    @property
    def address(self) -> str:
        """Where to find the service."""
        if self.public_url:
            return self.public_url.rstrip("/")
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone.

    Examples
    --------
    >>> is_loopback("localhost"), is_loopback("127.0.0.2"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_public_url(url: str) -> str:
    """An address without path; else InvalidSetting."""
    parts = urlsplit(url)
    if url and (parts.scheme not in {"http", "https"} or not parts.hostname or parts.path.strip("/") or parts.query):
        raise InvalidSetting(f"{url!r} is not an address such as https://quanet.example.org (without a path).")
    return url.rstrip("/")


def _host_of(url: str) -> str:
    name = urlsplit(url).hostname or ""
    return f"[{name}]" if ":" in name else name
