"""The source's adapters, as the project's settings choose them from ``SOURCE_ENGINES``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy import Engine

from migrator.adapters.sources.executors.chunk_reader import RunThere
from migrator.config.project import Settings
from migrator.model.grants import Grants
from migrator.ports.remains import Remains
from migrator.ports.sequences import SourceNumbers
from migrator.run.steps import Step, no_step
from migrator.wiring.source_engines import SOURCE_ENGINES, Source, SourceEngine


def source_parts(settings: Settings, step: Step = no_step, executors: RunThere | None = None) -> Source:
    """The catalog of the configured source, and what makes its readers for given tables. Connects to nothing yet.

    Args:
        settings: the project's configuration.
        step: hook at named points.
        executors: runs a function on an executor, where they are to read the dump's chunks.
    """
    engine, source = _chosen(settings)
    return engine.parts(source, step, executors)


def source_numbers(settings: Settings) -> SourceNumbers:
    """Returns the reader of how far the source's sequences are. Connects to nothing yet."""
    engine, source = _chosen(settings)
    return engine.numbers(source)


def source_grants(settings: Settings, tables: Sequence[str]) -> Grants:
    """The least rights that reading these tables needs. Connects to nothing."""
    engine, source = _chosen(settings)
    return engine.grants(source, tables)


def source_script(settings: Settings) -> Callable[[Sequence[str]], str] | None:
    """Returns what writes the SQL that the source needs before tables can be read; None where it needs none. It only
    reads the source."""
    engine, source = _chosen(settings)
    return engine.script(source)


def source_remains(settings: Settings) -> Remains:
    """Returns what a reset looks at at the source. Connects to nothing yet."""
    engine, source = _chosen(settings)
    return engine.remains(source)


def source_database(settings: Settings) -> Engine:
    """Returns the engine for our own table on the source (watermark placement)."""
    engine, source = _chosen(settings)
    return engine.database(source)


def _chosen(settings: Settings) -> tuple[SourceEngine[Any], Any]:
    """Returns the engine of the source, and the settings as its adapters take them."""
    engine = SOURCE_ENGINES[settings.source.kind]
    return engine, engine.settings(settings)
