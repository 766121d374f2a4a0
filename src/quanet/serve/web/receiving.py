"""Receive a file: streamed to disk and counted as it arrives, from the body itself or from a form."""

import errno
import os
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any

from fastapi import Request
from fastapi.concurrency import run_in_threadpool
from python_multipart.multipart import parse_options_header

from quanet.errors import InvalidData
from quanet.serve.web.error_answers import Refused
from quanet.serve.web.file_titles import clean_file_name
from quanet.serve.web.form_files import FormFile
from quanet.serve.web.sessions import FIELD, check_csrf
from quanet.serve.web.upload_kinds import check_unpacked, upload_suffix

BLOCK = 2**20  # written at once
FORM_BYTES = 2**20  # what a form has besides its file
SPARE = 64 * 2**20  # bytes of the disk that stay free
UNPACKED = 20  # how many times larger a file may be when unpacked, than the limit of uploads
_BINARY = {"schema": {"type": "string", "format": "binary"}}
# What FastAPI cannot derive, because the body is read as it arrives.
UPLOAD_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            },
            "text/csv": {"schema": {"type": "string"}, "example": "text,date\nFine film,2024-03-01\n"},
            "application/x-ndjson": {"schema": {"type": "string"}, "example": '{"text": "Fine film"}\n'},
            "application/vnd.apache.parquet": _BINARY,
        },
    }
}


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that has arrived completely.

    Attributes
    ----------
    path : a temporary file; it is deleted when the request ends, unless it was moved.
    name : as the user calls it, only to show it.
    suffix : from the fixed list of formats.
    size : bytes.
    fields : other fields of the form.
    """

    path: Path
    name: str
    suffix: str
    size: int
    fields: dict[str, str] = field(default_factory=dict)


async def receive_upload(request: Request) -> AsyncIterator[Upload]:
    """A dependency that receives the file of a request.

    The body is the file, or a form with a field `file`. It is refused as soon as it is known to be too large.
    """
    state = request.app.state
    limit: int = state.settings.upload_bytes
    request.state.body_limit = limit + FORM_BYTES
    await run_in_threadpool(_check_space, state.store.data, _announced(request, limit))
    with _temporary(state.store.blobs.incoming()) as file:
        path = Path(file.name)
        try:
            received = await _receive(request, file, limit)
            await run_in_threadpool(_finish, file, received.suffix, limit)
            state.meters.uploaded.inc(received.size)
            yield received
        finally:
            path.unlink(missing_ok=True)


def _announced(request: Request, limit: int) -> int:
    """The size that a request announces; refused if it is too large."""
    text = request.headers.get("content-length", "0")
    size = int(text) if text.isdigit() and len(text) < 20 else 0
    if size > limit + FORM_BYTES:
        raise _too_large(limit)
    return size


def _too_large(limit: int) -> Refused:
    return Refused(413, f"The file is larger than {limit / 2**20:,.0f} MB. Split it, or raise --max-upload.", "file")


def _check_space(folder: Path, size: int) -> None:
    if shutil.disk_usage(folder).free < size + SPARE:
        raise Refused(507, "The disk of the service is full. Nothing was stored.", "file")


def _temporary(folder: Path) -> Any:
    try:
        return NamedTemporaryFile(dir=folder, prefix="upload-", delete=False)
    except OSError as error:
        raise _unwritable(error) from error


def _unwritable(error: OSError) -> Refused:
    if error.errno in {errno.ENOSPC, errno.EDQUOT}:
        return Refused(507, "The disk of the service is full. Nothing was stored.", "file")
    return Refused(507, f"The service cannot store files: {error.strerror or error}.", "file")


async def _receive(request: Request, file: IO[bytes], limit: int) -> Upload:
    """Write the file in blocks, without waiting for the disk in the event loop."""
    kind, options = parse_options_header(request.headers.get("content-type", ""))
    form = _form(request, options) if kind == b"multipart/form-data" else None
    waiting, size, head = bytearray(), 0, b""
    async for chunk in request.stream():
        waiting += chunk if form is None else form.feed(chunk)
        if size + len(waiting) > limit:
            raise _too_large(limit)
        if len(waiting) >= BLOCK:
            head = head or bytes(waiting[:BLOCK])
            size += await run_in_threadpool(_write, file, waiting)
    head = head or bytes(waiting)
    size += await run_in_threadpool(_write, file, waiting)
    if form is not None and not form.complete:
        raise Refused(400, "The form ends too early. Send it again.", "file")
    if form is not None and form.name is None:
        raise Refused(422, "The form has no file. Send it in the field 'file'.", "file")
    if size == 0:
        raise Refused(422, "The file is empty.", "file")
    name = clean_file_name((form.name if form else _name_of_body(request)) or "")
    content_type = form.content_type if form else kind.decode("latin-1").lower()
    try:
        suffix = upload_suffix(head, name, content_type)
    except InvalidData as error:
        raise Refused(415, str(error), "file") from None
    return Upload(Path(file.name), name, suffix, size, form.fields if form else {})


def _form(request: Request, options: dict[bytes, bytes]) -> FormFile:
    def check(fields: dict[str, str]) -> None:
        if getattr(request.state, "csrf_pending", False):
            check_csrf(request, fields.get(FIELD))

    return FormFile(options.get(b"boundary", b""), check)


def _name_of_body(request: Request) -> str:
    _, options = parse_options_header(request.headers.get("content-disposition", ""))
    return request.query_params.get("name") or options.get(b"filename", b"").decode("utf-8", "replace")


def _write(file: IO[bytes], waiting: bytearray) -> int:
    try:
        written = file.write(waiting)
    except OSError as error:
        raise _unwritable(error) from error
    waiting.clear()
    return written


def _finish(file: IO[bytes], suffix: str, limit: int) -> None:
    """Everything is on the disk, and unpacks to a size that can be read."""
    try:
        file.flush()
        os.fsync(file.fileno())
    except OSError as error:
        raise _unwritable(error) from error
    try:
        check_unpacked(Path(file.name), suffix, limit * UNPACKED)
    except InvalidData as error:
        raise Refused(422, str(error), "file") from None
