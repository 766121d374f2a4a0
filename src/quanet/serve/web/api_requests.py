"""What the API accepts, with examples for its documentation."""

from dataclasses import Field as DataclassField
from dataclasses import fields
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, create_model, field_validator

from quanet.errors import InvalidSetting, nearest
from quanet.lab.catalogue import listed_methods
from quanet.serve.web.api_models import MAX_ID
from quanet.serve.web.file_titles import CONTROL, clean_title
from quanet.serve.work.read_options import ReadOptions

MOST = {"by": 5, "features": 1000, "names": 1000}  # values of a setting
ProjectId = Annotated[str, Path(pattern="^[a-z2-7]{10}$", examples=["k3v7q2mxa5"])]
Number = Annotated[int, Path(ge=1, le=MAX_ID, examples=[17])]
Before = Annotated[int | None, Query(ge=1, le=MAX_ID, description="Those with a smaller id: the next page.")]
Limit = Annotated[int, Query(ge=1, le=200, description="At most so many.")]


def _plain(text: str) -> str:
    if CONTROL.search(text):
        raise ValueError("Control characters are not accepted.")
    return text


Column = Annotated[str, Field(max_length=200), AfterValidator(_plain)]
Title = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(clean_title)]


class _Asked(BaseModel):
    model_config = ConfigDict(extra="forbid", str_strip_whitespace=False)


class LimitSettings(_Asked):
    """Limits of a project, below those of the service."""

    rows: int | None = Field(default=None, ge=1, le=10**9, description="Rows per file.")
    seconds: float | None = Field(default=None, ge=1, le=10**6, description="Seconds per job.")
    batches: int | None = Field(default=None, ge=1, le=10**7, description="Batches kept.")


def _field(one: DataclassField[Any]) -> tuple[Any, Any]:
    """A setting as a field of a model of the API: None if it is not given, with the checks of the command line."""
    kind: Any = type(one.default) if one.default is not None else str
    kind = {str: Column, tuple: list[Column]}.get(kind, kind)
    (low, high), most, check = one.metadata["bounds"], MOST.get(one.name), one.metadata["check"]

    def checked(value: Any) -> Any:
        if value is not None and check is not None:
            check(value)
        return value

    facts = Field(default=None, description=one.metadata["help"], ge=low, le=high, max_length=most)
    return Annotated[kind | None, facts, AfterValidator(checked)], None


_FIELDS: dict[str, Any] = {one.name: _field(one) for one in fields(ReadOptions) if one.metadata}
_Derived: Any = create_model("_Derived", __base__=_Asked, **_FIELDS)


class ProjectSettings(_Derived):
    """How files are read and answers are computed, as options of the command line; None: detected, or the default."""

    method: Column | None = Field(default=None, description="Quantification method, see quanet methods.")
    webhook: str | None = Field(default=None, max_length=1000, description="Address that alarms are sent to.")
    limits: LimitSettings | None = None

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"text": "review", "label": "sentiment", "by": ["product", "date:month"]}]},
    )

    @field_validator("method")
    @classmethod
    def _check_method(cls, method: str | None) -> str | None:
        # The command line also loads classes by module:Class; a service never loads code that a request names.
        known = {name.lower(): name for name in listed_methods()}
        if method is not None and method.lower() not in known:
            raise InvalidSetting(f"Unknown method {method!r}. {nearest(method, known.values())}")
        return method and known[method.lower()]

    @field_validator("webhook")
    @classmethod
    def _check_webhook(cls, url: str | None) -> str | None:
        try:
            parts = urlsplit(_plain(url or ""))
            good = not url or (parts.scheme in {"http", "https"} and parts.hostname and not parts.username)
        except ValueError:
            good = False
        if not good:
            raise InvalidSetting(f"{url!r} is not an address such as https://example.org/alarms.")
        return url


class NewProject(_Asked):
    """A project to create."""

    name: Title = Field(examples=["Film reviews"])
    settings: ProjectSettings = Field(default_factory=ProjectSettings)


class ProjectChange(_Asked):
    """What to change; what is left out stays. With `version`, only if nobody has changed it since."""

    name: Title | None = None
    settings: ProjectSettings | None = None
    version: int | None = Field(default=None, ge=0, le=MAX_ID)


class TrainRequest(_Asked):
    """Which file to learn from (the last one by default), and settings to change before."""

    file: int | None = Field(default=None, ge=1, le=MAX_ID)
    settings: ProjectSettings = Field(default_factory=ProjectSettings)


class PlanRequest(_Asked):
    """How many rows people will label."""

    number: int = Field(default=40, ge=2, le=2000)


class LabelRequest(_Asked):
    """The label of an item, or that it is skipped."""

    item: int = Field(ge=1, le=MAX_ID)
    label: Column | None = Field(default=None, examples=["positive"])
    skip: bool = False


class DifferenceRequest(_Asked):
    """Two groups, or two periods: values of the columns that the project groups by."""

    before: list[Column] = Field(min_length=1, max_length=5, examples=[["2024-01"]])
    after: list[Column] = Field(min_length=1, max_length=5, examples=[["2024-02"]])
