"""Every kind of server that a project's file may name has a row in each table of engines."""

from __future__ import annotations

from migrator.config.engines import ENGINES
from migrator.schema.dialects import DIALECTS
from migrator.wiring.source_engines import SOURCE_ENGINES
from migrator.wiring.target_engines import TARGET_ENGINES
from verify.dual_read.engines import ASKED
from verify.dual_read.log_files import FORMATS
from verify.readers.engines import JUDGED
from verify.tables.hashed_by_servers.engines import HASHING


def test_every_kind_of_source_has_its_adapters() -> None:
    assert tuple(SOURCE_ENGINES) == tuple(ENGINES)


def test_every_kind_of_target_has_its_adapters() -> None:
    assert tuple(TARGET_ENGINES) == tuple(ENGINES)


def test_every_kind_is_judged_and_asked() -> None:
    assert tuple(JUDGED) == tuple(ENGINES)
    assert tuple(ASKED) == tuple(ENGINES)
    assert tuple(HASHING) == tuple(ENGINES)
    assert {facts.query_log for facts in ENGINES.values()} == set(FORMATS)


def test_control_tables_are_made_in_every_kind() -> None:
    assert set(DIALECTS) == set(ENGINES)
