"""The application: routes, access, limits, errors and logs together."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.staticfiles import StaticFiles

from quanet import __version__
from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.tokens import secret_key
from quanet.serve.web import (
    alarm_routes,
    answer_routes,
    batch_routes,
    label_routes,
    project_routes,
    service_routes,
)
from quanet.serve.web.access import check_rules
from quanet.serve.web.envelope import Envelope
from quanet.serve.web.error_answers import add_error_answers
from quanet.serve.web.rate_limits import RateLimit
from quanet.serve.web.service_metrics import Meters
from quanet.serve.web.service_settings import ServiceSettings

STATIC = Path(__file__).parent / "static"
SPARE_THREADS = 16  # for static files, health and metrics
GUESSES = 20  # wrong tokens per minute that an address may send


def create_app(store: ServiceStore, settings: ServiceSettings | None = None) -> FastAPI:
    """The service on a store.

    Parameters
    ----------
    store : where it keeps everything.
    settings : limits and access; by default for this machine alone.
    """
    settings = settings or ServiceSettings()
    app = FastAPI(
        title="quanet",
        version=__version__,
        summary="Shares of classes in new data, with intervals: projects, batches, labels, alarms.",
        docs_url=None,  # its page loads scripts from elsewhere
        redoc_url=None,
        openapi_url=None,
    )
    app.state.store, app.state.settings = store, settings
    app.state.secret_key = secret_key(store)
    app.state.meters = Meters(store)
    app.state.requests = RateLimit(settings.requests_per_minute)
    app.state.guesses = RateLimit(GUESSES, burst=GUESSES)
    app.state.routers = [module.router for module in _MODULES] + _pages(app)
    for router in app.state.routers:
        check_rules(router)
        app.include_router(router)
    if STATIC.is_dir():
        app.mount("/static", StaticFiles(directory=STATIC), name="static")
    add_error_answers(app)
    app.add_middleware(Envelope, settings=settings, meters=app.state.meters)
    return app


_MODULES = (project_routes, batch_routes, answer_routes, label_routes, alarm_routes, service_routes)


def _pages(app: FastAPI) -> list[APIRouter]:
    if find_spec("quanet.serve.web.pages") is None:
        return []
    pages: Any = import_module("quanet.serve.web.pages")
    app.state.error_page = pages.error_page
    return [pages.router]
