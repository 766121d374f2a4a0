"""Requests made from the description of the API (schemathesis), and what is wrong with their answers."""

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.store_errors import NotFound
from quanet.serve.store.uploads import batch
from quanet.serve.web.app import create_app
from quanet.serve.web.service_settings import ServiceSettings

from .made_service import Made, fill

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
KNOWN = 0.8  # of the requests are about something that exists


def run_schema(store: ServiceStore, folder: Path, cases: int, first: int = 0) -> Counter[str]:
    """Send about `cases` requests; the answers by status, such as "404". An answer that is wrong raises an error.

    Parameters
    ----------
    store : of the service.
    folder : for temporary files.
    cases : how many requests, spread over all operations.
    first : seed.
    """
    app = create_app(store, ServiceSettings(host="0.0.0.0", insecure=True, requests_per_minute=10**9, projects=10**6))
    made = _existing(store, folder)
    schema = schemathesis.openapi.from_asgi("/api/openapi.json", app)
    operations = [found.ok() for found in schema.get_all_operations()]
    each = max(1, cases // (2 * len(operations)))
    counts: Counter[str] = Counter()
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):

            @seed(first)
            @settings(
                max_examples=each,
                deadline=None,
                database=None,
                derandomize=False,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def check(case):
                _aim(case, made(), random.Random(str(case.body) + str(case.query)))
                response = case.call()
                counts[str(response.status_code)] += 1
                case.validate_response(response, checks=CHECKS)

            with suppress(Unsatisfiable):  # nothing can be wrong with a request that has no parameters
                check()
    return counts


def _existing(store: ServiceStore, folder: Path) -> Callable[[], Made]:
    """What gives a project that has everything; another one when requests have deleted something of it."""
    known: list[Made] = []

    def existing() -> Made:
        try:
            with store.read() as connection:
                batch(connection, known[-1].project, known[-1].batch)
        except (NotFound, IndexError):
            place = folder / f"made{len(known)}"
            place.mkdir()
            known.append(fill(store, place))
        return known[-1]

    return existing


def _aim(case, made: Made, rng: random.Random) -> None:
    """Let most requests be about what exists."""
    known = {"project_id": made.project, "number": made.batch, "form": rng.choice(("json", "csv", "html"))}
    for name in set(known) & set(case.path_parameters or {}):
        if rng.random() < KNOWN:
            case.path_parameters[name] = known[name]
