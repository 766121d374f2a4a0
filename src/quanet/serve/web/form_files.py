"""A form with a file, parsed while it arrives: fields stay in memory, the file does not."""

from collections.abc import Callable

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from quanet.serve.web.error_answers import Refused

MAX_FIELDS, MAX_FIELD_BYTES = 50, 64 * 1024


class FormFile:
    """Feed it the body of a form; it gives the bytes of its file.

    Attributes
    ----------
    fields : the other fields, by name.
    name, content_type : of the file; None before it begins.
    complete : whether the form has ended.
    """

    def __init__(self, boundary: bytes, check: Callable[[dict[str, str]], None]) -> None:
        self.fields: dict[str, str] = {}
        self.name: str | None = None
        self.content_type = ""
        self.complete = False
        self._check = check  # called with the fields before the file
        self._header = self._value = b""
        self._part: dict[str, bytes] = {}  # headers of the current part
        self._field: str | None = None  # the current field; None inside the file
        self._content = bytearray()
        self._file: list[bytes] = []
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._part_begins,
                    "on_header_field": self._header_name,
                    "on_header_value": self._header_value,
                    "on_header_end": self._header_ends,
                    "on_headers_finished": self._headers_end,
                    "on_part_data": self._part_data,
                    "on_part_end": self._part_ends,
                    "on_end": self._form_ends,
                },
            )
        except FormParserError:
            raise Refused(400, "The form cannot be read: its boundary is not valid.") from None

    def feed(self, chunk: bytes) -> bytes:
        """Bytes of the file in this part of the body."""
        try:
            self._parser.write(chunk)
        except FormParserError as error:
            raise Refused(400, f"The form cannot be read: {str(error)[:100]}.") from None
        found = b"".join(self._file)
        self._file.clear()
        return found

    def _part_begins(self) -> None:
        self._part = {}
        self._content = bytearray()

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_ends(self) -> None:
        self._part[self._header.decode("latin-1").lower()] = self._value
        self._header = self._value = b""

    def _headers_end(self) -> None:
        _, options = parse_options_header(self._part.get("content-disposition", b""))
        if b"filename" not in options:
            self._field = options.get(b"name", b"").decode("utf-8", "replace")
            return
        if self.name is not None:
            raise Refused(400, "The form has more than one file. Upload one at a time.", "file")
        self._check(self.fields)
        self._field = None
        self.name = options[b"filename"].decode("utf-8", "replace")
        self.content_type = self._part.get("content-type", b"").decode("latin-1").partition(";")[0].strip().lower()

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        if self._field is None:
            self._file.append(data[start:end])
            return
        self._content += data[start:end]
        if len(self._content) > MAX_FIELD_BYTES:
            raise Refused(413, f"The field {self._field[:40]!r} is too long.", self._field[:40])

    def _part_ends(self) -> None:
        if self._field is not None:
            self.fields[self._field] = self._content.decode("utf-8", "replace")
            if len(self.fields) > MAX_FIELDS:
                raise Refused(413, "The form has too many fields.")

    def _form_ends(self) -> None:
        self.complete = True
