"""An output of change events, and the event log's reader that keeps its place."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from migrator.adapters.event_log.files.segment_reader import FileSegmentReader
from migrator.adapters.outputs.http_api.api import Api, Endpoint
from migrator.adapters.outputs.http_api.output import Bounds, HttpOutput
from migrator.adapters.outputs.http_api.refusal import Request
from migrator.adapters.outputs.http_api.spool import Spool
from migrator.adapters.outputs.json_lines.lines import numbered
from migrator.adapters.outputs.json_lines.output import JsonLinesFile, JsonLinesStream
from migrator.adapters.outputs.kafka.brokers import Brokers, Login
from migrator.adapters.outputs.kafka.messages import Envelope
from migrator.adapters.outputs.kafka.output import KafkaOutput
from migrator.adapters.outputs.parquet_events.output import ParquetFolder
from migrator.config.event_outputs import EventOptions, HttpSettings, http_settings, kafka_settings
from migrator.config.project import Settings
from migrator.ports.output import EventOutput

_SECRET_CHARACTERS = 4
"""A shorter value of a header isn't looked for in what an API says: it would be found everywhere."""


def event_output(
    settings: Settings,
    options: EventOptions,
    pause: Callable[[float], bool],
    note: Callable[[str], None],
) -> tuple[FileSegmentReader, EventOutput]:
    """An output of change events (docs/reference/events.md), and the reader that keeps its place.

    Args:
        settings: the project's configuration.
        options: of the output; ``-`` for standard output, which can't be continued.
        pause: waits so many seconds; returns whether a stop is requested.
        note: is told what users should know of where events go.

    Raises ``EventLogError`` when another process writes this output, ``ConfigError`` for options that can't be used.
    """
    if options.output == "-":
        name = f"standard output of process {os.getpid()} {secrets.token_hex(4)}"
        return FileSegmentReader(settings.event_log(), name, passing=True), JsonLinesStream(1)
    if options.kind == "http":
        found = http_settings(options, os.environ)
        reader = FileSegmentReader(settings.event_log(), f"http:{options.name or options.output}")
        return reader, _http(found, options, reader.beside("batch"), pause)
    if options.kind == "kafka":
        kafka = _kafka(settings, options, note)  # first: a package that is missing leaves no trace
        return FileSegmentReader(settings.event_log(), f"kafka:{options.name or options.output}"), kafka
    absolute = Path(os.path.abspath(options.output))
    output: EventOutput = JsonLinesFile(absolute) if options.kind == "json" else ParquetFolder(absolute)
    name = f"{options.kind}:{options.name or absolute}"
    return FileSegmentReader(settings.event_log(), name), output


def _http(
    found: HttpSettings, options: EventOptions, batch: Path, pause: Callable[[float], bool]
) -> HttpOutput:
    hidden = [value.removeprefix("Bearer ") for value in found.headers.values()]
    request = Request(found.url, "", 0, [value for value in hidden if len(value) >= _SECRET_CHARACTERS])
    endpoint = Endpoint(found.url, found.headers, found.tls, options.timeout_s, options.patience_s)
    bounds = Bounds(options.batch_events, options.batch_bytes)
    return HttpOutput(request, Api(endpoint, pause), Spool(batch), numbered, bounds)


def _kafka(settings: Settings, options: EventOptions, note: Callable[[str], None]) -> KafkaOutput:
    found = kafka_settings(options, settings.name)
    login = Login(
        found.servers,
        f"migrator.{settings.name}.{found.prefix}",
        found.prefix,
        found.client,
        options.patience_s,
    )
    envelope = Envelope(found.prefix, _version(), options.schemas)
    return KafkaOutput(Brokers(login, note), envelope)


def _version() -> str:
    """The installed version; ``source`` where the code runs from a source tree."""
    try:
        return version("dbmigrator")
    except PackageNotFoundError:
        return "source"
