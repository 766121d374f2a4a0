"""Metrics for Prometheus: requests by address, uploads, and jobs that wait."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, GCCollector, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from quanet.serve.store.connection import ServiceStore
from quanet.serve.store.jobs import count_jobs

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 1, 2.5, 10)


class Meters:
    """What the service counts. Addresses are templates such as /projects/{project}, so there are few."""

    def __init__(self, store: ServiceStore) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "quanet_requests", "Requests by address", ("method", "route", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "quanet_request_seconds", "Seconds per request", ("route",), buckets=SECONDS, registry=self.registry
        )
        self.uploaded = Counter("quanet_upload_bytes", "Bytes received", registry=self.registry)
        self.registry.register(_Jobs(store))
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)

    def text(self) -> bytes:
        """All metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class _Jobs(Collector):
    """Jobs by state, counted when somebody asks."""

    def __init__(self, store: ServiceStore) -> None:
        self.store = store

    def describe(self) -> Iterable[Metric]:
        return [GaugeMetricFamily("quanet_jobs", "Jobs by state and kind", labels=("state", "kind"))]

    def collect(self) -> Iterable[Metric]:
        family = GaugeMetricFamily("quanet_jobs", "Jobs by state and kind", labels=("state", "kind"))
        with self.store.read() as connection:
            for (state, kind), number in count_jobs(connection).items():
                family.add_metric((state, kind), number)
        return [family]
