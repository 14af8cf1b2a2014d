"""An observation as the text that Prometheus scrapes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from migrator.adapters.observers.declared import COUNTER, METRICS
from migrator.model.observed.observation import Observation

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Collected(Collector):
    """One look, as families of samples."""

    def __init__(self, look: Callable[[], Observation]):
        self._look = look

    def collect(self) -> Iterator[Metric]:
        """Every metric of which something is known."""
        seen = self._look()
        for declared in METRICS:
            labels = ("migration", *declared.labels)
            kind = CounterMetricFamily if declared.kind == COUNTER else GaugeMetricFamily
            family = kind(declared.full_name, declared.meaning, labels=labels)
            for values, amount in declared.read(seen):
                family.add_metric([seen.migration, *values], amount)
            if family.samples:
                yield family

    def describe(self) -> Iterator[Metric]:
        """Nothing: a registry would look otherwise when it is filled."""
        return iter(())


def exposition(seen: Observation) -> bytes:
    """Writes all metrics of which something is known."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collected(lambda: seen))
    return generate_latest(registry)
