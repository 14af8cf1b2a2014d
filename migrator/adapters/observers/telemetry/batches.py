"""Batches as traces: a span for the whole, with its mapping and each attempt to commit it within."""

from __future__ import annotations

import threading
from typing import Any

from migrator.model.observed.observation import COMMIT, StepTaken

_WAITING = 16
"""Batches that are mapped and not committed at most; one runs ahead. Older ones are sent as they are."""


class BatchSpans:
    """Puts the steps of batches together, whichever threads take them.

    A batch's span begins with its mapping and ends with the commit that brings it into the target; a piece of a
    joined target that is filled has a span of its own, for it belongs to no segment.

    Args:
        tracer: of the SDK.
    """

    def __init__(self, tracer: Any):
        self._tracer = tracer
        self._open: dict[int, Any] = {}
        self._lock = threading.Lock()

    def add(self, step: StepTaken) -> None:
        """Sends one step, and the batch's span if the step ends it."""
        with self._lock:
            whole = self._whole(step)
            self._send(step, whole)
            if step.name == COMMIT and not step.error:
                self._open.pop(step.segment, whole).end(step.ended_us * 1000)
            while len(self._open) > _WAITING:
                self._open.pop(next(iter(self._open))).end()

    def close(self) -> None:
        """Sends the spans of batches that aren't in the target."""
        with self._lock:
            for span in self._open.values():
                span.end()
            self._open.clear()

    def _whole(self, step: StepTaken) -> Any:
        if (span := self._open.get(step.segment)) is None:
            name = "batch" if step.segment else "fill"
            attributes = {"migrator.segment": step.segment} if step.segment else {}
            span = self._tracer.start_span(name, start_time=step.began_us * 1000, attributes=attributes)
            self._open[step.segment] = span
        return span

    def _send(self, step: StepTaken, whole: Any) -> None:
        from opentelemetry.trace import StatusCode, set_span_in_context

        within = set_span_in_context(whole)
        span = self._tracer.start_span(step.name, context=within, start_time=step.began_us * 1000)
        if step.error:
            span.set_attribute("error.type", step.error)
            span.set_status(StatusCode.ERROR)
        span.end(step.ended_us * 1000)
