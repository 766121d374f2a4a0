"""What visitors change: the same functions for the API and the pages. Every change is in the audit log."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from quanet.serve.store.answers import answer
from quanet.serve.store.audit_log import record
from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.jobs import JobRow, enqueue
from quanet.serve.store.projects import (
    ProjectRow,
    change_settings,
    count_projects,
    create_project,
    delete_project,
    project,
)
from quanet.serve.store.uploads import (
    BatchRow,
    FileRow,
    add_file,
    batch,
    count_batches,
    delete_batch,
    file,
    find_batch,
    list_files,
    read_all_again,
    receive_batch,
)
from quanet.serve.web.access import Visitor
from quanet.serve.web.api_requests import ProjectSettings
from quanet.serve.web.error_answers import Refused, sentence_of
from quanet.serve.web.file_titles import clean_title
from quanet.serve.web.receiving import Upload
from quanet.serve.web.service_settings import ServiceSettings
from quanet.serve.work.demo_project import start_demo

# Settings that batches are read with: if one changes, all batches are read again.
READ_WITH = (
    *("text", "features", "by", "weight", "date_format", "encoding", "delimiter"),
    *("names", "show", "level", "seed"),
)
NO_MODEL = "The project has no model yet. Upload a labelled file and train it first."


def check_settings(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a project that were given, checked; else Refused, which names the field."""
    try:
        return ProjectSettings.model_validate(dict(changes)).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise Refused(422, *sentence_of(error.errors()[0])) from None


def add_project(
    store: ServiceStore, limits: ServiceSettings, visitor: Visitor, name: str, settings: Mapping[str, Any]
) -> ProjectRow:
    """Create a project."""
    title = clean_title(name)
    if not title:
        raise Refused(422, "Give the project a name.", "name")
    checked = check_settings(settings)
    with store.write() as connection:
        _check_number(connection, limits)
        made = create_project(connection, title, checked)
        record(connection, visitor.name, "create project", made.id, {"name": title})
    return made


def add_demo(store: ServiceStore, limits: ServiceSettings, visitor: Visitor) -> tuple[ProjectRow, JobRow]:
    """Create the project with film reviews, and queue the job that fills it."""
    with store.read() as connection:
        _check_number(connection, limits)
    return start_demo(store, visitor.name)


def change_project(
    store: ServiceStore,
    visitor: Visitor,
    project_id: str,
    changes: Mapping[str, Any],
    *,
    name: str | None = None,
    version: int | None = None,
) -> ProjectRow:
    """Change some settings of a project, and its name if one is given. Batches are read again if they need to be."""
    checked = check_settings(changes)
    title = None if name is None else clean_title(name)
    if title == "":
        raise Refused(422, "Give the project a name.", "name")
    with store.write() as connection:
        known = project(connection, project_id)
        changed = change_settings(connection, project_id, {**known.settings, **checked}, version, title)
        if known.model and any(changed.settings.get(one) != known.settings.get(one) for one in READ_WITH):
            read_all_again(connection, project_id)
        record(connection, visitor.name, "change settings", project_id, {"settings": sorted(checked)})
    return changed


def _check_number(connection: Any, limits: ServiceSettings) -> None:
    if count_projects(connection) >= limits.projects:
        raise Refused(409, f"There are {limits.projects:,} projects, which is the limit. Delete one first.")


def remove_project(store: ServiceStore, visitor: Visitor, project_id: str) -> None:
    """Delete a project with everything in it. The audit log keeps that it was deleted."""
    with store.write() as connection:
        name = project(connection, project_id).name
        record(connection, visitor.name, "delete project", project_id, {"name": name})
    delete_project(store, project_id)


def store_training(store: ServiceStore, visitor: Visitor, project_id: str, upload: Upload) -> tuple[FileRow, JobRow]:
    """Store a labelled file, and queue its check."""
    with store.read() as connection:
        project(connection, project_id)
    blob = store.blobs.put_file(upload.path, upload.suffix)
    with store.write() as connection:
        project(connection, project_id)
        added = add_file(connection, project_id, "training", upload.name, blob, upload.size)
        job = enqueue(connection, "check", project_id, {"file": added.id}, key=f"check:{added.id}")
        record(connection, visitor.name, "upload training file", project_id, {"file": added.id, "name": upload.name})
    return added, job


def start_training(store: ServiceStore, visitor: Visitor, project_id: str, file_id: int | None = None) -> JobRow:
    """Queue training on a labelled file, by default on the last one."""
    with store.write() as connection:
        project(connection, project_id)
        if file_id is None:
            last = list_files(connection, project_id, "training", limit=1)
            if not last:
                raise Refused(409, "The project has no labelled file yet. Upload one first.", "file")
            file_id = last[0].id
        elif file(connection, project_id, file_id).kind != "training":
            raise Refused(422, f"File {file_id} is new data, not a labelled file.", "file")
        job = enqueue(connection, "train", project_id, {"file": file_id}, key=f"train:{project_id}", lane="long")
        record(connection, visitor.name, "train", project_id, {"file": file_id, "job": job.id})
    return job


def store_batch(
    store: ServiceStore,
    limits: ServiceSettings,
    visitor: Visitor,
    project_id: str,
    upload: Upload,
    key: str | None = None,
) -> tuple[BatchRow, bool]:
    """Store new data, and queue its reading. False: the same key or content was accepted before.

    Parameters
    ----------
    store, limits, visitor : the store, the settings of the service, and who uploads.
    project_id, upload : what for, and what.
    key : the Idempotency-Key; by default the content is the key.
    """
    with store.read() as connection:
        _check_room(project(connection, project_id), sum(count_batches(connection, project_id).values()), limits)
    blob = store.blobs.put_file(upload.path, upload.suffix)
    with store.write() as connection:
        project(connection, project_id)
        known = find_batch(connection, project_id, key) if key else None
        if known and file(connection, project_id, known.file).blob != blob:
            raise Refused(422, "This Idempotency-Key was used for another file. Use a new key.", "Idempotency-Key")
        row, new = receive_batch(connection, project_id, upload.name, blob, upload.size, key)
        if new:
            record(connection, visitor.name, "upload batch", project_id, {"batch": row.id, "name": upload.name})
    return row, new


def _check_room(known: ProjectRow, number: int, limits: ServiceSettings) -> None:
    if not known.model:
        raise Refused(409, NO_MODEL)
    most = min(limits.batches, (known.settings.get("limits") or {}).get("batches") or limits.batches)
    if number >= most:
        raise Refused(409, f"The project has {number:,} batches, which is its limit. Delete some first.")


def remove_batch(store: ServiceStore, visitor: Visitor, project_id: str, batch_id: int) -> None:
    """Delete a batch with its file, state, labels and answers."""
    with store.write() as connection:
        batch(connection, project_id, batch_id)
        record(connection, visitor.name, "delete batch", project_id, {"batch": batch_id})
    delete_batch(store, project_id, batch_id)


def ask_plan(store: ServiceStore, visitor: Visitor, project_id: str, batch_id: int, number: int) -> JobRow:
    """Queue a plan of the rows of a batch to label."""
    with store.write() as connection:
        if batch(connection, project_id, batch_id).status != "done":
            raise Refused(409, f"Batch {batch_id} has no answer yet. Wait until it is done.")
        payload = {"batch": batch_id, "number": number}
        job = enqueue(connection, "plan", project_id, payload, key=f"plan:{batch_id}")
        record(connection, visitor.name, "plan labels", project_id, payload)
    return job


def ask_difference(
    store: ServiceStore, visitor: Visitor, project_id: str, before: Sequence[str], after: Sequence[str]
) -> JobRow:
    """Queue the difference between two groups or periods."""
    if list(before) == list(after):
        raise Refused(422, "Choose two different groups.", "after")
    with store.write() as connection:
        keys = project(connection, project_id).settings.get("by") or []
        if answer(connection, project_id, "overview", "project") is None:
            raise Refused(409, "The project has no answer yet. Upload new data first.")
        for name, values in (("before", before), ("after", after)):
            if len(values) != len(keys):
                raise Refused(422, f"The project groups by {len(keys)} columns; give a value for each.", name)
        about = difference_about(before, after)
        payload = {"before": list(before), "after": list(after)}
        job = enqueue(connection, "difference", project_id, payload, key=f"difference:{project_id}:{about}")
        record(connection, visitor.name, "compare", project_id, payload)
    return job


def difference_about(before: Sequence[str], after: Sequence[str]) -> str:
    """What the answer to a difference is about.

    Examples
    --------
    >>> difference_about(["lamp", "2024-01"], ["lamp", "2024-02"])
    'lamp, 2024-01|lamp, 2024-02'
    """
    return f"{', '.join(before)}|{', '.join(after)}"
