"""A client of a quanet service: projects, training, batches, answers and labels from Python."""

import io
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, TypeVar

from quanet.errors import MissingExtra, QuanetError

if TYPE_CHECKING:
    import httpx
    import pandas as pd

RETRIED = {429, 502, 503, 504}  # the request was not accepted, or perhaps: a key makes it safe to send again
ATTEMPTS = 6
LONGEST_PAUSE = 30.0  # seconds
Kind = TypeVar("Kind")
Opener = Callable[[], IO[bytes]]


class ServiceError(QuanetError):
    """The service refused a request, with the sentence of its message; `status` of HTTP, `field` that is wrong."""

    def __init__(self, message: str, status: int = 0, field: str | None = None) -> None:
        super().__init__(message)
        self.status, self.field = status, field


@dataclass(frozen=True, slots=True)
class RemoteJob:
    """A job of the service."""

    id: int
    kind: str
    state: str
    progress: float
    message: str
    error: str


@dataclass(frozen=True, slots=True)
class RemoteProject:
    """A project of the service."""

    id: str
    name: str
    settings: Mapping[str, Any]
    model: str


@dataclass(frozen=True, slots=True)
class RemoteBatch:
    """A batch of the service; `repeated` if it had been accepted before."""

    id: int
    project: str
    status: str
    error: str
    rows: int
    totals: Mapping[str, Any] | None = field(default=None)
    sentence: str = ""
    repeated: bool = False


class Client:
    """A connection to a service (`quanet serve`). Use it in a ``with`` block, or close it.

    Parameters
    ----------
    url : address of the service, such as http://127.0.0.1:8000.
    token : as `quanet token create` printed it; None for a service on this machine.
    name : tells programs that share a token apart when they label.
    timeout : seconds to wait for an answer.

    Examples
    --------
    >>> from quanet.client import Client
    >>> with Client("http://127.0.0.1:8000") as service:  # doctest: +SKIP
    ...     project = service.create("Film reviews", text="review", label="sentiment", by=["date:month"])
    ...     service.wait(service.upload_training(project, "reviews.csv"))
    ...     service.wait(service.train(project))
    ...     batch = service.wait_batch(service.batch(project, "march.csv"))
    ...     print(service.answer(batch)["shares"])
    """

    def __init__(self, url: str, token: str | None = None, *, name: str = "", timeout: float = 60.0) -> None:
        try:
            import httpx
        except ModuleNotFoundError:
            raise MissingExtra("quanet.client needs httpx. Install it: pip install 'quanet[client]'") from None
        headers = {"accept": "application/json"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        if name:
            headers["x-visitor"] = name
        try:
            self._http: httpx.Client = httpx.Client(base_url=url, headers=headers, timeout=timeout)
        except (httpx.InvalidURL, ValueError) as error:
            raise ServiceError(f"{url!r} is not an address: {error}.") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def projects(self) -> Iterator[RemoteProject]:
        """All projects, newest first."""
        for found in self._pages("/api/projects", "projects"):
            yield _made(RemoteProject, found)

    def create(self, name: str, **settings: Any) -> RemoteProject:
        """Create a project, with settings named as the options of the command line."""
        return _made(RemoteProject, self._ask("POST", "/api/projects", json={"name": name, "settings": settings}))

    def delete(self, project: RemoteProject | str) -> None:
        """Delete a project with everything in it."""
        self._ask("DELETE", f"/api/projects/{_id(project)}")

    def upload_training(self, project: RemoteProject | str, data: "str | Path | pd.DataFrame") -> RemoteJob:
        """Upload labelled data: a file, or a DataFrame. The job checks it."""
        answer = self._upload(f"/api/projects/{_id(project)}/training", data)
        return _made(RemoteJob, answer["job"])

    def train(self, project: RemoteProject | str, **settings: Any) -> RemoteJob:
        """Train a model on the data that were uploaded last, with changed settings if given."""
        answer = self._ask("POST", f"/api/projects/{_id(project)}/train", json={"settings": settings})
        return _made(RemoteJob, answer)

    def batch(
        self, project: RemoteProject | str, data: "str | Path | pd.DataFrame", *, key: str | None = None
    ) -> RemoteBatch:
        """Upload new data: a file, or a DataFrame. The same data, or the same `key`, are one batch."""
        headers = {"idempotency-key": key} if key else {}
        return _made(RemoteBatch, self._upload(f"/api/projects/{_id(project)}/batches", data, headers))

    def batches(self, project: RemoteProject | str) -> Iterator[RemoteBatch]:
        """All batches of a project, newest first."""
        for found in self._pages(f"/api/projects/{_id(project)}/batches", "batches"):
            yield _made(RemoteBatch, found)

    def wait(self, job: RemoteJob, *, timeout: float = 3600.0) -> RemoteJob:
        """Wait until a job is done. Raises `ServiceError` with its sentence if it failed."""
        for _ in _moments(timeout, f"Job {job.id} ({job.kind})"):
            job = _made(RemoteJob, self._ask("GET", f"/api/jobs/{job.id}"))
            if job.state in {"failed", "cancelled"}:
                raise ServiceError(job.error or f"Job {job.id} ({job.kind}) was cancelled.")
            if job.state == "done":
                break
        return job

    def wait_batch(self, batch: RemoteBatch, *, timeout: float = 3600.0) -> RemoteBatch:
        """Wait until a batch has its answer. Raises `ServiceError` with the sentence of what is wrong with its data."""
        for _ in _moments(timeout, f"Batch {batch.id}"):
            found = self._ask("GET", f"/api/projects/{batch.project}/batches/{batch.id}")
            batch = _made(RemoteBatch, {**found, "sentence": (found["answer"] or {}).get("sentence", "")})
            if batch.status == "failed":
                raise ServiceError(batch.error)
            if batch.status == "done":
                break
        return batch

    def answer(self, batch: RemoteBatch, *, refined: bool = False) -> dict[str, Any]:
        """The answer to a batch, as `quanet predict --format json` gives it, or with its labels, as `quanet refine`."""
        place = f"/projects/{batch.project}/batches/{batch.id}{'/refined' if refined else ''}.json"
        answer: dict[str, Any] = self._ask("GET", place)
        return answer

    def overview(self, project: RemoteProject | str) -> dict[str, Any]:
        """The shares of all batches, by group."""
        answer: dict[str, Any] = self._ask("GET", f"/projects/{_id(project)}/overview.json")
        return answer

    def plan(self, batch: RemoteBatch, number: int = 40) -> RemoteJob:
        """Choose the rows of a batch whose labels narrow the interval most."""
        answer = self._ask("POST", f"/api/projects/{batch.project}/batches/{batch.id}/plan", json={"number": number})
        return _made(RemoteJob, answer)

    def next_label(self, batch: RemoteBatch) -> dict[str, Any]:
        """The next row to label ("item", None if none is left), the "classes", and the "progress"."""
        found: dict[str, Any] = self._ask("GET", f"/api/projects/{batch.project}/batches/{batch.id}/label")
        return found

    def label(self, batch: RemoteBatch, item: int, label: str | None) -> dict[str, Any]:
        """Label a row, or skip it (None); returns what `next_label` does."""
        given = {"item": item, "skip": True} if label is None else {"item": item, "label": label}
        place = f"/api/projects/{batch.project}/batches/{batch.id}/label"
        found: dict[str, Any] = self._ask("POST", place, json=given)
        return found

    def labels(self, batch: RemoteBatch) -> str:
        """The sheet with the labels given so far, as CSV, for `quanet refine`."""
        return self._send("GET", f"/api/projects/{batch.project}/batches/{batch.id}/labels.csv").text

    def _pages(self, place: str, name: str) -> Iterator[Any]:
        before = None
        while True:
            page = self._ask("GET", place, params={"limit": 200, **({"before": before} if before else {})})
            yield from page[name]
            before = page["next"]
            if before is None:
                return

    def _upload(self, place: str, data: Any, headers: Mapping[str, str] | None = None) -> Any:
        if isinstance(data, str | Path):
            path = Path(data)
            if not path.is_file():
                raise ServiceError(f"The file {path} does not exist.")
            name, kind = path.name, "application/octet-stream"
        else:
            name, kind = "data.parquet", "application/vnd.apache.parquet"
            content = io.BytesIO()
            data.to_parquet(content, index=False)

        def opened() -> IO[bytes]:
            """The data from their start: they may be sent again."""
            return path.open("rb") if isinstance(data, str | Path) else io.BytesIO(content.getvalue())

        headers = {"content-type": kind, **(headers or {})}
        # The content, or the key, makes a batch one batch, however often it is sent.
        again = place.endswith("/batches")
        return self._ask("POST", place, again=again, opened=opened, params={"name": name}, headers=headers)

    def _ask(self, method: str, place: str, **more: Any) -> Any:
        answer = self._send(method, place, **more)
        return answer.json() if answer.content else None

    def _send(
        self,
        method: str,
        place: str,
        *,
        again: bool = False,
        opened: Callable[[], IO[bytes]] | None = None,
        **more: Any,
    ) -> "httpx.Response":
        """Send a request, again if it was not accepted; `again`: also if it may have been."""
        import httpx

        for attempt in range(1, ATTEMPTS + 1):
            wait = min(2.0**attempt / 4, LONGEST_PAUSE)
            try:
                with opened() if opened else nullcontext() as content:
                    answer = self._http.request(method, place, content=content, **more)
            except httpx.TransportError as error:
                safe = again or method == "GET" or isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
                if not safe or attempt == ATTEMPTS:
                    reason = str(error) or type(error).__name__
                    raise ServiceError(f"{self._http.base_url} does not answer: {reason}.") from error
            else:
                if answer.is_success:
                    return answer
                if attempt == ATTEMPTS or answer.status_code not in (RETRIED if again or method == "GET" else {429}):
                    raise _refusal(answer)
                wait = max(wait, _seconds(answer.headers.get("retry-after", "")))
            time.sleep(min(wait, LONGEST_PAUSE))
        raise AssertionError("unreachable")


def _refusal(answer: "httpx.Response") -> ServiceError:
    """The sentence of the service."""
    try:
        found = answer.json()
        return ServiceError(str(found["error"]), answer.status_code, found.get("field"))
    except (ValueError, KeyError, TypeError, AttributeError):
        return ServiceError(f"{answer.url} answers {answer.status_code} {answer.reason_phrase}.", answer.status_code)


def _seconds(text: str) -> float:
    return float(text) if text.isdigit() else 0.0


def _id(project: RemoteProject | str) -> str:
    return project if isinstance(project, str) else project.id


def _made(kind: type[Kind], found: Mapping[str, Any]) -> Kind:
    """What the service answered, without what later versions add."""
    return kind(**{one.name: found[one.name] for one in fields(kind) if one.name in found})  # type: ignore[arg-type]


def _moments(timeout: float, what: str) -> Iterator[None]:
    """Moments to look again, at first soon; ServiceError after the timeout."""
    until, pause = time.monotonic() + timeout, 0.1
    while True:
        yield
        if time.monotonic() > until:
            raise ServiceError(f"{what} is not done after {timeout:g} s. It goes on; wait again.")
        time.sleep(pause)
        pause = min(1.5 * pause, 2.0)
