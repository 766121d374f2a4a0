"""What the API answers, with examples for its documentation."""

from typing import Any, Literal

from pydantic import BaseModel, Field

MAX_ID = 2**31 - 1  # what every database can store


class ErrorAnswer(BaseModel):
    """What is wrong, and which field."""

    error: str = Field(examples=["Unknown period 'moth' in 'date:moth'. Choose from month, day, week, quarter, year."])
    field: str | None = Field(examples=["settings.by"])


class JobAnswer(BaseModel):
    """Work that a worker does."""

    id: int = Field(examples=[3])
    project: str | None
    kind: str = Field(examples=["predict"])
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    progress: float = Field(description="Share that is done.", examples=[0.4])
    message: str = Field(examples=["Learning words"])
    error: str
    created: float
    finished: float | None


class FileAnswer(BaseModel):
    """A file that was uploaded."""

    id: int
    name: str
    size: int
    created: float


class ProjectAnswer(BaseModel):
    """A project."""

    id: str = Field(examples=["k3v7q2mxa5"])
    name: str = Field(examples=["Film reviews"])
    created: float
    settings: dict[str, Any]
    model: str = Field(description='"" before training.')
    version: int
    url: str = Field(examples=["/projects/k3v7q2mxa5"])


class ProjectDetail(ProjectAnswer):
    """A project, how many batches have each status, and its jobs that wait or run."""

    batches: dict[str, int] = Field(examples=[{"done": 12, "queued": 1}])
    jobs: list[JobAnswer]


class ProjectList(BaseModel):
    """Projects, newest first; `next` is the value of `before` for the next page."""

    projects: list[ProjectAnswer]
    next: str | None


class AnswerLinks(BaseModel):
    """An answer: its sentence, the command that gives the same, and where its forms are."""

    id: int
    kind: str
    about: str
    sentence: str = Field(examples=["62 % of the reviews are positive (95 % interval: 58 to 66 %)."])
    command: str = Field(examples=["quanet predict model new.csv --format json"])
    data: dict[str, Any]
    forms: dict[str, str] = Field(examples=[{"json": "/projects/k3v7q2mxa5/batches/17.json"}])
    created: float


class BatchAnswer(BaseModel):
    """A batch of new data, with its answer once it is done."""

    id: int = Field(examples=[17])
    project: str
    name: str = Field(description="As the user calls the file.", examples=["march.csv"])
    created: float
    status: Literal["queued", "running", "done", "failed"]
    error: str
    rows: int
    totals: dict[str, Any] | None
    model: str
    url: str
    answer: AnswerLinks | None = None
    refined: AnswerLinks | None = None


class BatchList(BaseModel):
    """Batches, newest first; `next` is the value of `before` for the next page."""

    batches: list[BatchAnswer]
    next: int | None


class BatchReceipt(BatchAnswer):
    """A batch that was accepted; `repeated` if the same content or Idempotency-Key had been accepted before."""

    repeated: bool


class TrainingReceipt(BaseModel):
    """A labelled file that was accepted, and the job that checks it."""

    file: FileAnswer
    job: JobAnswer


class ModelAnswer(BaseModel):
    """The model card."""

    model: str
    card: AnswerLinks | None
    download: str = Field(examples=["/api/projects/k3v7q2mxa5/model.zip"])


class LabelItemAnswer(BaseModel):
    """A row to label; None if none is left."""

    id: int
    position: int
    text: str
    detail: dict[str, Any]


class LabelProgressAnswer(BaseModel):
    """How far labelling is."""

    labelled: int
    skipped: int
    left: int


class LabelAnswer(BaseModel):
    """The next row to label, the classes, and how far labelling is."""

    plan: int
    item: LabelItemAnswer | None
    classes: list[str]
    progress: LabelProgressAnswer


class AlarmAnswer(BaseModel):
    """A change that the monitor has found."""

    id: int
    date: str
    sentence: str
    data: dict[str, Any]
    created: float
    delivered: float | None


class AlarmList(BaseModel):
    """Alarms, newest first; `next` is the value of `before` for the next page."""

    alarms: list[AlarmAnswer]
    next: int | None


class FileList(BaseModel):
    """Labelled files, newest first; `next` is the value of `before` for the next page."""

    files: list[FileAnswer]
    next: int | None


class JobList(BaseModel):
    """Jobs, newest first; `next` is the value of `before` for the next page."""

    jobs: list[JobAnswer]
    next: int | None


class DifferenceList(BaseModel):
    """Differences, newest first; `next` is the value of `before` for the next page."""

    differences: list[AnswerLinks]
    next: int | None


class AuditList(BaseModel):
    """Entries of the audit log, newest first; `next` is the value of `before` for the next page."""

    entries: list["AuditAnswer"]
    next: int | None


class AuditAnswer(BaseModel):
    """Who did what."""

    id: int
    at: float
    who: str = Field(examples=["ann"])
    action: str = Field(examples=["delete batch"])
    project: str
    detail: dict[str, Any]


class DemoAnswer(BaseModel):
    """The demo project, and the job that fills it."""

    project: ProjectAnswer
    job: JobAnswer
