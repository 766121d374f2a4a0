"""The model of a project: its errors, the coverage of its intervals, its card."""

from collections.abc import Mapping
from typing import Any

from fastapi import Request
from fastapi.responses import Response

from quanet.serve.store.answers import answer
from quanet.serve.store.projects import project
from quanet.serve.web.pages.page_access import Reader, router, store_of
from quanet.serve.web.pages.project_pages import running_jobs
from quanet.serve.web.pages.rendering import fragment_of, show_project

BARS = (("error", "quanet"), ("counted", "plain count"), ("constant", "guess: the shares in training"))
MOST_CHARACTERS = 300  # of a fact on the card


@router.get("/projects/{project_id}/model")
def model(request: Request, _: Reader, project_id: str) -> Response:
    """The model card."""
    store = store_of(request)
    with store.read() as connection:
        known = project(connection, project_id)
        found = answer(connection, project_id, "training", f"model:{known.model}") if known.model else None
        running = [job for job in running_jobs(connection, project_id) if job.kind == "train"]
        return show_project(
            request,
            known,
            "model.html",
            "Model",
            answer=found,
            content=fragment_of(store, found),
            running=running[0] if running else None,
            reload=bool(running),
            **model_values(found.data if found else {}),
        )


def model_values(data: Mapping[str, Any]) -> dict[str, Any]:
    """Errors as bars, the coverage of intervals, and the card, as the template shows them."""
    errors, coverage = data.get("errors") or {}, data.get("coverage") or {}
    bars = [(name, errors.get(key)) for key, name in BARS]
    return {
        "errors": errors,
        "bars": [(name, value) for name, value in bars if value is not None and value == value],
        "coverage": coverage,
        "card": [(str(name).replace("_", " "), value) for name, value in _plain(data.get("facts") or {})],
    }


def _plain(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Facts that fit on a line."""
    texts = [(str(name), _text(value)) for name, value in facts.items()]
    return [(name, text) for name, text in texts if text and len(text) <= MOST_CHARACTERS]


def _text(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {one}" for key, one in value.items() if isinstance(one, str | int | float))
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
