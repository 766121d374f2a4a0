"""Errors as answers: one JSON shape, with the sentence that the command line prints."""

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from quanet.errors import QuanetError
from quanet.serve.store.store_errors import LeaseLost, NotFound, Outdated, StoreError
from quanet.serve.web.api_models import ErrorAnswer

SENTENCES = {
    404: "This address does not exist.",
    405: "This address does not accept this method.",
    400: "The request cannot be read.",
}
STATUS: dict[type[QuanetError], int] = {NotFound: 404, LeaseLost: 409, Outdated: 409, StoreError: 503}
ERRORS: dict[int | str, dict[str, Any]] = {
    code: {"model": ErrorAnswer, "description": text}
    for code, text in {
        400: "The request cannot be read.",
        401: "A token is needed.",
        403: "The role of the token is not sufficient, or another site sent the request.",
        404: "It does not exist.",
        409: "Not possible now.",
        413: "Too large.",
        415: "Not a format that is accepted.",
        422: "A value is wrong.",
        429: "Too many requests; see Retry-After.",
        503: "The database cannot be used.",
        507: "The disk is full.",
    }.items()
}
INTERNAL = "Internal error. The log of the service has the details."


class Refused(QuanetError, HTTPException):
    """A request that is refused; `field` names what is wrong."""

    def __init__(
        self, status: int, sentence: str, field: str | None = None, headers: dict[str, str] | None = None
    ) -> None:
        HTTPException.__init__(self, status, sentence, headers)
        self.args = (sentence,)
        self.sentence, self.field = sentence, field

    def __str__(self) -> str:
        return self.sentence


def add_error_answers(app: FastAPI) -> None:
    """Answer errors in one shape."""
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(Refused, _of_http)
    app.add_exception_handler(RequestValidationError, _of_validation)
    app.add_exception_handler(QuanetError, _of_quanet)


def error_answer(
    request: Request, status: int, sentence: str, field: str | None = None, headers: Any = None
) -> Response:
    """The answer to a request that failed: a page for a browser, JSON for a program."""
    page = getattr(request.app.state, "error_page", None)
    if page is not None and _wants_page(request):
        response: Response = page(request, status, sentence)
        response.headers.update(headers or {})
        return response
    return JSONResponse({"error": sentence, "field": field}, status, headers)


def _wants_page(request: Request) -> bool:
    return not request.url.path.startswith("/api/") and "text/html" in request.headers.get("accept", "")


def _of_http(request: Request, error: Any) -> Response:
    if isinstance(error, Refused):
        return error_answer(request, error.status_code, error.sentence, error.field, error.headers)
    return error_answer(
        request, error.status_code, SENTENCES.get(error.status_code, str(error.detail)), headers=error.headers
    )


def _of_quanet(request: Request, error: Any) -> Response:
    status = next((code for kind, code in STATUS.items() if isinstance(error, kind)), 422)
    return error_answer(request, status, str(error))


def _of_validation(request: Request, error: Any) -> Response:
    first = error.errors()[0]
    return error_answer(request, 422, *sentence_of({**first, "loc": first["loc"][1:]}))


def sentence_of(problem: Any) -> tuple[str, str | None]:
    """What is wrong with a value, and the field that it stands in."""
    kind, message = problem["type"], problem["msg"].removeprefix("Value error, ")
    field = ".".join(str(part) for part in problem["loc"] if not isinstance(part, int)) or None
    if kind == "json_invalid":
        return "The body is not valid JSON.", None
    if kind == "model_attributes_type" and field is None:
        return "The body is not a JSON object with the header Content-Type: application/json.", None
    if kind == "missing":
        return f"{field or 'The body'} is missing.", field
    sentence = message if kind == "value_error" or field is None else f"{field}: {message}."
    return sentence.encode("utf-8", "backslashreplace").decode(), field
