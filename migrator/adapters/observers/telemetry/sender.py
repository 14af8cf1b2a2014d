"""The sender of a run's metrics, events and batches, by OpenTelemetry's own SDK.

Names and labels of metrics are those that Prometheus scrapes, so that alerts and dashboard hold for both ways.
Nothing of a run waits for a collector, but for its end, which waits ``LIMIT_S`` at most.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import entry_points
from typing import Any

from migrator.adapters.observers.declared import COUNTER, METRICS, Metric
from migrator.adapters.observers.run_log import encodable
from migrator.adapters.observers.telemetry.asked import LOGS, TRACES, Asked
from migrator.adapters.observers.telemetry.asked import METRICS as MEASURES
from migrator.adapters.observers.telemetry.batches import BatchSpans
from migrator.model.observed.happening import ERROR, WARNING, Happening
from migrator.model.observed.observation import Observation, StepTaken

LIMIT_S = 10.0
_FRESH_S = 0.5
"""The instruments of one collection read one observation."""

Note = Callable[[str, str], None]
"""Takes what a warning is about, and its words; empty: it is over."""


def installed(signal: str) -> frozenset[str]:
    """The names of a signal's exporters that are installed; without the SDK there is none."""
    return frozenset(one.name for one in entry_points(group=f"opentelemetry_{signal}_exporter"))


class Telemetry:
    """Sends what a run does, until it is closed. What can't be sent is a warning of the run, and lost.

    Args:
        asked: the exporters.
        resource: attributes of the process; OpenTelemetry's variables override them.
        look: the observation behind the metrics.
        note: takes and withdraws warnings.
    """

    def __init__(
        self, asked: Asked, resource: Mapping[str, str], look: Callable[[], Observation], note: Note
    ):
        self._note, self._look = note, _Fresh(look)
        self._closing: list[Callable[[], object]] = []
        self._spans: BatchSpans | None = None
        self._logger: Any = None
        self._heard = _Heard()
        for problem in asked.problems:
            note(f"opentelemetry {problem.split(' ', 1)[0].rstrip(':')}", problem)
        for signal, begin in ((TRACES, self._trace), (MEASURES, self._measure), (LOGS, self._log)):
            if not (names := asked.of(signal)):
                continue
            about, self._heard.last = f"opentelemetry variables of {signal}", ""
            try:
                begin(_resource(resource), [self._exporter(signal, name) for name in names])
            except Exception as error:  # noqa: BLE001 - of the SDK or an exporter: a variable that it can't read
                note(about, f"OpenTelemetry's {signal} aren't sent: {error}; correct the variables OTEL_*")
            else:
                note(about, self._heard.last and f"OpenTelemetry's {signal}: {self._heard.last}")

    def event(self, at_us: int, one: Happening) -> None:
        """Sends an event of the run's log."""
        if self._logger is None:
            return
        from opentelemetry._logs import SeverityNumber

        severity = {WARNING: SeverityNumber.WARN, ERROR: SeverityNumber.ERROR}.get(
            one.level, SeverityNumber.INFO
        )
        self._logger.emit(
            timestamp=at_us * 1000,
            severity_number=severity,
            severity_text=one.level.upper(),
            body=encodable(one.words),
            attributes={"migrator.about": encodable(one.about)} if one.about else {},
            event_name=one.event,
        )

    def step(self, step: StepTaken) -> None:
        """Sends a step of a batch."""
        if self._spans is not None:
            self._spans.add(step)

    def close(self) -> None:
        """Sends what waits, and ends. Waits ``LIMIT_S`` at most."""
        if self._spans is not None:
            self._spans.close()
        ends = [threading.Thread(target=_quietly, args=(end,), daemon=True) for end in self._closing]
        for end in ends:
            end.start()
        until_s = time.monotonic() + LIMIT_S
        for end in ends:
            end.join(max(0.0, until_s - time.monotonic()))
        self._heard.close()

    # -- one signal each ----------------------------------------------------------------------------------------

    def _trace(self, resource: Any, exporters: list[Any]) -> None:
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        for exporter in exporters:
            provider.add_span_processor(BatchSpanProcessor(exporter))
        self._closing.append(provider.shutdown)
        self._spans = BatchSpans(provider.get_tracer("migrator"))

    def _measure(self, resource: Any, exporters: list[Any]) -> None:
        from opentelemetry.sdk.metrics import MeterProvider
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

        readers = [PeriodicExportingMetricReader(exporter) for exporter in exporters]
        provider = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
        self._closing.append(provider.shutdown)
        meter = provider.get_meter("migrator")
        for one in METRICS:
            create = meter.create_observable_counter if one.kind == COUNTER else meter.create_observable_gauge
            create(one.full_name, callbacks=[partial(_samples, one, self._look)], description=one.meaning)

    def _log(self, resource: Any, exporters: list[Any]) -> None:
        from opentelemetry.sdk._logs import LoggerProvider
        from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

        provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
        for exporter in exporters:
            provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
        self._closing.append(provider.shutdown)
        self._logger = provider.get_logger("migrator")

    def _exporter(self, signal: str, name: str) -> Any:
        """An exporter whose failures are warnings of the run."""
        (entry,) = entry_points(group=f"opentelemetry_{signal}_exporter", name=name)
        exporter = entry.load()()
        export, about = exporter.export, f"opentelemetry {signal}"

        def watched(*batch: Any, **options: Any) -> Any:
            result = export(*batch, **options)
            if getattr(result, "name", "") == "FAILURE":
                said = self._heard.last or "the collector didn't take them"
                self._note(
                    about, f"OpenTelemetry's {signal} are lost: {said}; look at the collector, and at OTEL_*"
                )
            else:
                self._note(about, "")
            return result

        exporter.export = watched
        return exporter


class _Fresh:
    """An observation that is half a second old at most."""

    def __init__(self, look: Callable[[], Observation]):
        self._look, self._at_s = look, 0.0
        self._seen: Observation | None = None
        self._lock = threading.Lock()

    def __call__(self) -> Observation:
        with self._lock:
            if self._seen is None or time.monotonic() - self._at_s > _FRESH_S:
                self._seen, self._at_s = self._look(), time.monotonic()
            return self._seen


class _Heard(logging.Handler):
    """The last words of the SDK, which would go to the terminal else, into the display of the run.

    ``last``: those of the calling thread. Each signal is sent by a thread of its own: one's failure isn't another's.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._words = threading.local()
        self._logger = logging.getLogger("opentelemetry")
        self._before = self._logger.propagate
        self._logger.addHandler(self)
        self._logger.propagate = False

    @property
    def last(self) -> str:
        """The words; empty where there were none."""
        return str(getattr(self._words, "last", ""))

    @last.setter
    def last(self, words: str) -> None:
        self._words.last = words

    def emit(self, record: logging.LogRecord) -> None:
        """Keeps one record's words."""
        self.last = record.getMessage().strip().rstrip(".")

    def close(self) -> None:
        """Leaves the SDK's words to whoever wants them."""
        self._logger.removeHandler(self)
        self._logger.propagate = self._before
        super().close()


def _samples(one: Metric, look: Callable[[], Observation], _options: object) -> Iterable[Any]:
    from opentelemetry.metrics import Observation as Sample

    seen = look()
    for values, amount in one.read(seen):
        labels = {"migration": seen.migration, **dict(zip(one.labels, values, strict=True))}
        yield Sample(amount, {name: encodable(value) for name, value in labels.items()})


def _resource(ours: Mapping[str, str]) -> Any:
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    return Resource.create({**ours, **OTELResourceDetector().detect().attributes})


def _quietly(end: Callable[[], object]) -> None:
    with suppress(Exception):  # of an exporter: the run has ended already
        end()
