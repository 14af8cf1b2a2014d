"""A collector of OpenTelemetry: an HTTP server that takes OTLP, and keeps what it took."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_KINDS: dict[str, Any] = {
    "/v1/traces": ExportTraceServiceRequest,
    "/v1/metrics": ExportMetricsServiceRequest,
    "/v1/logs": ExportLogsServiceRequest,
}
Sample = tuple[str, tuple[tuple[str, str], ...]]
"""A metric's name, and its labels in order."""


class Collector:
    """Takes what is sent to ``address`` while it is entered.

    Attributes:
        status: of its answers; 200 takes, 400 refuses for good.
        bodies: what it took, by path.
    """

    def __init__(self, status: int = 200):
        self.status = status
        self.bodies: dict[str, list[Any]] = {path: [] for path in _KINDS}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Collector:
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def samples(self) -> dict[Sample, float]:
        """The last amount of each sample of metrics."""
        found: dict[Sample, float] = {}
        for metric in self._parts("/v1/metrics", "resource_metrics", "scope_metrics", "metrics"):
            points = metric.sum.data_points or metric.gauge.data_points
            for point in points:
                amount = point.as_double if point.WhichOneof("value") == "as_double" else float(point.as_int)
                found[metric.name, tuple(sorted(_attributes(point).items()))] = amount
        return found

    def counters(self) -> set[str]:
        """The names of metrics that only rise."""
        metrics = self._parts("/v1/metrics", "resource_metrics", "scope_metrics", "metrics")
        return {metric.name for metric in metrics if metric.sum.is_monotonic}

    def spans(self) -> list[Any]:
        """The spans, in the order in which they were sent."""
        return list(self._parts("/v1/traces", "resource_spans", "scope_spans", "spans"))

    def records(self) -> list[Any]:
        """The events, likewise."""
        return list(self._parts("/v1/logs", "resource_logs", "scope_logs", "log_records"))

    def resource(self, path: str, within: str) -> dict[str, str]:
        """The attributes of the process that sent last."""
        return _attributes(getattr(self.bodies[path][-1], within)[-1].resource)

    def _parts(self, path: str, resources: str, scopes: str, parts: str) -> Iterator[Any]:
        for body in list(self.bodies[path]):
            for resource in getattr(body, resources):
                for scope in getattr(resource, scopes):
                    yield from getattr(scope, parts)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                sent = self.rfile.read(int(self.headers["Content-Length"]))
                if collector.status == 200:
                    collector.bodies[self.path].append(_KINDS[self.path].FromString(sent))
                self.send_response(collector.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Nothing: tests print enough."""

        return Handler


def _attributes(part: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in part.attributes}
