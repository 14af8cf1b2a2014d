"""What a reset finds at a PostgreSQL source, what it removes there, and what refuses it."""

from __future__ import annotations

import secrets
from dataclasses import replace

import pytest

from migrator.adapters.sources.postgres.remains import PostgresSourceRemains
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.errors import SourceError
from migrator.ports.remains import Kind
from tests.fix_postgres_source import WATERMARK_TABLE, log_reader, prepared, source_of
from tests.servers import Database

pytestmark = pytest.mark.integration


@pytest.fixture
def source(old_pg: Database) -> PostgresSource:
    """A source with slot, publication and a watermark row, and those of another migration."""
    old_pg.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        *WATERMARK_TABLE,
    )
    made = source_of(old_pg)
    prepared(made, "t")
    prepared(replace(made, migration=f"{made.migration[:24]}_other"), "t")
    for name in (made.migration, f"{made.migration}_x"):
        old_pg.execute(f"INSERT INTO migrator.watermark VALUES ('{name}', 'token', 'low')")
    return made


def slots(old: Database) -> list[str]:
    found = old.query("SELECT slot_name FROM pg_replication_slots WHERE database = current_database()")
    return sorted(str(name) for (name,) in found)


def test_what_is_ours_goes_and_what_is_anothers_stays(source: PostgresSource, old_pg: Database) -> None:
    place = PostgresSourceRemains(source)
    left = place.found().left
    assert [one.kind for one in left] == [Kind.SLOT, Kind.PUBLICATION, Kind.WATERMARK]
    for one in left:
        place.remove([one])
        place.remove([one])  # what is gone is no error
    assert place.found().left == ()
    assert source.slot not in slots(old_pg)
    assert len(old_pg.query("SELECT pubname FROM pg_publication")) == 1
    assert len(old_pg.query("SELECT * FROM migrator.watermark")) == 1


def test_a_slot_that_is_read_refuses_and_its_reader_goes_on(source: PostgresSource, old_pg: Database) -> None:
    place = PostgresSourceRemains(source)
    with log_reader(source, prepared(source, "t")) as reader:
        with pytest.raises(SourceError, match="is in use by another session") as caught:
            place.found()
        assert "stop that process" in caught.value.remedy
        reader.read(0.1)
    assert source.slot in slots(old_pg)


def test_a_login_without_rights_is_told_what_a_superuser_runs(
    source: PostgresSource, old_pg: Database
) -> None:
    role = f"poor_{secrets.token_hex(4)}"
    old_pg.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'poor'")
    try:
        poor = replace(source, server=replace(source.server, user=role, password="poor"))
        with pytest.raises(SourceError, match="can't be dropped") as caught:
            PostgresSourceRemains(poor).found()
        old_pg.execute(caught.value.remedy.partition(": ")[2].partition(";")[0])
        found = PostgresSourceRemains(poor).found()
        assert found.left == ()
        (kept,) = found.kept
        assert kept.startswith(f"publication {source.slot}, which is {old_pg.user}'s: ")
        old_pg.execute(kept.partition("s: ")[2])
        assert PostgresSourceRemains(poor).found().kept == ()
    finally:
        old_pg.execute(f"DROP ROLE {role}")


def test_a_slot_of_somebody_else_stays(source: PostgresSource, old_pg: Database) -> None:
    old_pg.query("SELECT pg_drop_replication_slot(%s)", [source.slot])
    old_pg.query("SELECT pg_create_physical_replication_slot(%s)", [source.slot])
    try:
        found = PostgresSourceRemains(source).found()
        assert Kind.SLOT not in {one.kind for one in found.left}
        assert "it isn't this migration's (plugin none, database none)" in found.kept[0]
    finally:
        old_pg.query("SELECT pg_drop_replication_slot(%s)", [source.slot])
