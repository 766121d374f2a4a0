"""What the API accepts, with examples for its documentation."""

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Path, Query
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, field_validator

from quanet.data.csv_files import check_delimiter
from quanet.data.encodings import check_encoding
from quanet.data.periods import parse_key
from quanet.errors import InvalidSetting, nearest
from quanet.lab.catalogue import listed_methods
from quanet.parameters import check_level
from quanet.serve.web.api_models import MAX_ID
from quanet.serve.web.file_titles import CONTROL, clean_title

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


class ProjectSettings(_Asked):
    """How files are read and answers are computed, as options of the command line; None: detected, or the default."""

    text: Column | None = Field(default=None, description="Column with the texts.")
    features: list[Column] | None = Field(
        default=None, max_length=1000, description="Numeric columns instead of texts."
    )
    label: Column | None = Field(default=None, description="Column with the labels of the training file.")
    by: list[Column] | None = Field(default=None, max_length=5, description="Columns to group by, such as date:month.")
    weight: Column | None = Field(default=None, description="Column with weights.")
    date_format: Column | None = Field(default=None, description="Format of dates, such as %d/%m/%Y.")
    encoding: Column | None = Field(default=None, description="Encoding of text files; auto detects it.")
    delimiter: Column | None = Field(default=None, description="Delimiter of CSV files; auto finds it.")
    normalize_labels: bool | None = Field(default=None, description="Unify spellings of labels: Pos, pos.")
    names: list[Column] | None = Field(default=None, max_length=1000, description="Names of classes: 0=negative.")
    show: Column | None = Field(default=None, description="The class that sentences are about.")
    level: float | None = Field(default=None, description="Confidence level of intervals.")
    method: Column | None = Field(default=None, description="Quantification method, see quanet methods.")
    seed: int | None = Field(default=None, ge=0, le=2**31 - 1, description="Seed.")
    webhook: str | None = Field(default=None, max_length=1000, description="Address that alarms are sent to.")
    limits: LimitSettings | None = None

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={"examples": [{"text": "review", "label": "sentiment", "by": ["product", "date:month"]}]},
    )

    @field_validator("by")
    @classmethod
    def _check_keys(cls, keys: list[str] | None) -> list[str] | None:
        for key in keys or []:
            parse_key(key)
        return keys

    @field_validator("level")
    @classmethod
    def _check_level(cls, level: float | None) -> float | None:
        if level is not None:
            check_level(level)
        return level

    @field_validator("encoding")
    @classmethod
    def _check_encoding(cls, encoding: str | None) -> str | None:
        return encoding if encoding is None else check_encoding(encoding)

    @field_validator("delimiter")
    @classmethod
    def _check_delimiter(cls, delimiter: str | None) -> str | None:
        if delimiter is not None:
            check_delimiter(delimiter)
        return delimiter

    @field_validator("method")
    @classmethod
    def _check_method(cls, method: str | None) -> str | None:
        # The command line also loads classes by module:Class; a service never loads code that a request names.
        known = {name.lower(): name for name in listed_methods()}
        if method is not None and method.lower() not in known:
            raise InvalidSetting(f"Unknown method {method!r}. {nearest(method, known.values())}")
        return method and known[method.lower()]

    @field_validator("names")
    @classmethod
    def _check_names(cls, names: list[str] | None) -> list[str] | None:
        for name in names or []:
            if not all(name.partition("=")):
                raise InvalidSetting(f"{name!r} is not LABEL=NAME, such as 0=negative.")
        return names

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
