"""Requests made from the description of the API never break the service; `benchmarks/serve_schema.py` sends more."""

import pytest
from fastapi.routing import APIRoute


@pytest.mark.no_cover
def test_requests_made_from_the_description_never_break_the_service(store, tmp_path):
    from .schema_run import run_schema

    counts = run_schema(store, tmp_path, 300)
    assert sum(counts.values()) >= 200
    assert {"200", "404", "422"} <= set(counts)
    assert not [status for status in counts if status.startswith("5")]


def test_the_description_has_examples_and_one_shape_of_errors(client):
    described = client.get("/api/openapi.json").json()
    assert len(described["paths"]) > 30
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"], (method, path)
            shape = operation["responses"]["422"]["content"]["application/json"]["schema"]
            assert shape["$ref"].endswith("/ErrorAnswer"), (method, path)
            if method in {"post", "patch"} and "requestBody" in operation:
                assert "example" in str(operation["requestBody"]) or "$ref" in str(operation["requestBody"])


def test_every_api_address_is_described(client):
    described = set(client.get("/api/openapi.json").json()["paths"])
    for router in client.app.state.routers:
        for route in router.routes:
            if isinstance(route, APIRoute) and route.path.startswith("/api/") and route.path != "/api/openapi.json":
                assert route.path_format in described
