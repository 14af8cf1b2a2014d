"""The slot: made once, resumed, and a named gap whenever it can't hold the position that is needed."""

from __future__ import annotations

import os
import signal
import threading
import time
from dataclasses import replace

import psycopg
import pytest

from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.adapters.sources.postgres.chunks.chunk_reader import PostgresChunkReader
from migrator.adapters.sources.postgres.log.log_reader import PostgresLogReader
from migrator.adapters.sources.postgres.lsn import format_lsn, token_parts
from migrator.errors import ConnectionFailed, GapError, MigratorError, SourceError
from migrator.model.position import Position
from tests.fix_postgres_source import (
    Proxy,
    changes,
    drop_slot,
    log_reader,
    parts,
    prepared,
    read_to,
    read_until,
    source_of,
    wait_for,
)
from tests.servers import Database, PostgresServer

pytestmark = pytest.mark.integration


def table(database: Database) -> None:
    database.execute("CREATE TABLE t (k int PRIMARY KEY, v text)", "ALTER TABLE t REPLICA IDENTITY FULL")


def test_prepare_may_be_repeated_and_follows_the_tables(old_pg: Database) -> None:
    table(old_pg)
    old_pg.execute("CREATE TABLE u (k int PRIMARY KEY)", "ALTER TABLE u REPLICA IDENTITY FULL")
    source = source_of(old_pg)
    catalog = PostgresCatalog(source)
    members = "SELECT tablename::text FROM pg_publication_tables WHERE pubname = %s ORDER BY 1"
    catalog.prepare(catalog.tables(["t"]))
    assert old_pg.query(members, [source.slot]) == [("t",)]
    catalog.prepare(catalog.tables(["t", "u"]))
    catalog.prepare(catalog.tables(["u", "t"]))
    assert old_pg.query(members, [source.slot]) == [("t",), ("u",)]
    catalog.prepare(catalog.tables(["u"]))
    assert old_pg.query(members, [source.slot]) == [("u",)]
    flags = "SELECT pubupdate, pubdelete, pubtruncate, pubviaroot FROM pg_publication WHERE pubname = %s"
    assert old_pg.query(flags, [source.slot]) == [(True, True, True, True)]


def test_missing_tables_and_keys_are_named_all_at_once(old_pg: Database) -> None:
    table(old_pg)
    old_pg.execute("CREATE TABLE keyless (k int UNIQUE)")
    catalog = PostgresCatalog(source_of(old_pg))
    with pytest.raises(SourceError, match=r"public\.nope, public\.other\.t"):
        catalog.tables(["t", "nope", "other.t"])
    with pytest.raises(SourceError, match=r"no usable key: public\.keyless"):
        catalog.tables(["t", "keyless"])


@pytest.mark.parametrize(
    ("constraint", "key"),
    [
        ("PRIMARY KEY (b, a)", ("b", "a")),
        ("UNIQUE (a)", ("a",)),
        ("UNIQUE (n), UNIQUE (a, b)", ("a", "b")),
        ("PRIMARY KEY (a) DEFERRABLE, UNIQUE (b)", ("b",)),
    ],
)
def test_the_key_is_the_primary_key_else_a_unique_index_on_not_null_columns(
    old_pg: Database, constraint: str, key: tuple[str, ...]
) -> None:
    old_pg.execute(
        f"CREATE TABLE k (a int NOT NULL, b int NOT NULL, n int, {constraint})",
        "CREATE UNIQUE INDEX ON k (a) WHERE a > 0",
        "CREATE UNIQUE INDEX ON k ((a + 1))",
    )
    (schema,) = PostgresCatalog(source_of(old_pg)).tables(["k"])
    assert schema.key == key


def test_without_a_slot_there_is_a_named_gap(old_pg: Database) -> None:
    table(old_pg)
    source = source_of(old_pg)
    schemas = PostgresCatalog(source).tables(["t"])
    with pytest.raises(GapError, match="no longer holds the log") as caught:
        PostgresLogReader(source, schemas).start(None)
    assert "doesn't exist" in caught.value.cause


def test_a_slot_made_anew_does_not_hide_the_gap(old_pg: Database) -> None:
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    with log_reader(source, schemas) as reader:
        old_pg.execute("INSERT INTO t VALUES (1, 'x')")
        (part,) = parts(read_until(reader, lambda records: bool(parts(records))))
    drop_slot(old_pg, source.slot)
    old_pg.execute("INSERT INTO t VALUES (2, 'lost')")
    prepared(source, "t")
    with pytest.raises(GapError, match="doesn't hold the position") as caught:
        PostgresLogReader(source, schemas).start(part.position)
    assert "only goes back to" in caught.value.cause


def test_a_slot_is_dropped_once_its_walsender_has_noticed_that_nobody_reads(
    postgres: PostgresServer, old_pg: Database
) -> None:
    if postgres.embedded is None:
        pytest.skip("the server's processes are in a container")
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    with log_reader(source, schemas):
        ((walsender,),) = old_pg.query(
            f"SELECT active_pid FROM pg_replication_slots WHERE slot_name = '{source.slot}'"
        )
        os.kill(walsender, signal.SIGSTOP)  # as if a loaded machine didn't let it run
    dropping = threading.Thread(target=drop_slot, args=(old_pg, source.slot))
    try:
        with pytest.raises(psycopg.errors.ObjectInUse):
            old_pg.execute(f"SELECT pg_drop_replication_slot('{source.slot}')")
        dropping.start()
    finally:
        os.kill(walsender, signal.SIGCONT)
    dropping.join(30)
    assert old_pg.query(f"SELECT 1 FROM pg_replication_slots WHERE slot_name = '{source.slot}'") == []


def test_a_position_of_another_server_or_of_the_future_is_refused(old_pg: Database) -> None:
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    end = PostgresCatalog(source).position()
    lsn, system = token_parts(end)
    assert "/" not in system  # only the log reader knows the timeline
    other = Position(end.order, f"{format_lsn(lsn)}@1234")
    with pytest.raises(GapError) as caught:
        PostgresLogReader(source, schemas).start(other)
    assert caught.value.cause == f"the position is of server 1234, this is server {system}"
    future = Position(end.order + (1 << 40), f"{format_lsn(lsn + (1 << 40))}@{system}")
    with pytest.raises(GapError) as caught:
        PostgresLogReader(source, schemas).start(future)
    assert "but the server's log ends at" in caught.value.cause


def test_a_slot_that_lost_its_log_is_a_gap_with_a_remedy(postgres: PostgresServer, old_pg: Database) -> None:
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    with log_reader(source, schemas) as reader:
        old_pg.execute("INSERT INTO t VALUES (1, 'x')")
        (part,) = parts(read_until(reader, lambda records: bool(parts(records))))
    wait_for(old_pg, f"SELECT NOT active FROM pg_replication_slots WHERE slot_name = '{source.slot}'")
    postgres.admin.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'", "SELECT pg_reload_conf()")
    try:
        wait_for(old_pg, "SELECT current_setting('max_slot_wal_keep_size') = '1MB'")
        for _ in range(4):
            old_pg.execute("INSERT INTO t SELECT max(k) + 1, 'y' FROM t", "SELECT pg_switch_wal()")
        old_pg.execute("CHECKPOINT")
        wait_for(
            old_pg, f"SELECT wal_status = 'lost' FROM pg_replication_slots WHERE slot_name = '{source.slot}'"
        )
        warned = [finding.check for finding in PostgresCatalog(source).preflight(["t"])]
    finally:
        postgres.admin.execute("ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()")
    assert {"slot", "max_slot_wal_keep_size"} <= set(warned)
    for attempt in (
        lambda: PostgresLogReader(source, schemas).start(part.position),
        lambda: PostgresCatalog(source).prepare(schemas),
    ):
        with pytest.raises(GapError, match="no longer holds the log") as caught:
            attempt()
        assert "wal_removed" in caught.value.cause or "lost" in caught.value.cause  # 16 has no reason
        assert "start the migration anew (docs/how-to/start-anew.md)" in caught.value.remedy


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ("DROP PUBLICATION {}", "publication"),
        ("ALTER PUBLICATION {} DROP TABLE t", "it doesn't have public.t"),
        ("ALTER PUBLICATION {} SET (publish = 'insert')", "all operations"),
        ("ALTER PUBLICATION {} SET TABLE t WHERE (k > 5)", "whole tables"),
        ("ALTER PUBLICATION {} SET TABLE t (k)", "whole tables"),
    ],
)
@pytest.mark.parametrize("running", [True, False])
def test_a_publication_changed_behind_our_back_is_never_silent(
    old_pg: Database, monkeypatch: pytest.MonkeyPatch, change: str, says: str, running: bool
) -> None:
    monkeypatch.setattr("migrator.adapters.sources.postgres.log.log_reader._LOOK_EVERY_S", 0.5)
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    statement = change.format(source.slot)
    if running:
        with log_reader(source, schemas) as reader:
            old_pg.execute(statement, "INSERT INTO t VALUES (1, 'x')")
            with pytest.raises(GapError, match="doesn't cover") as caught:
                read_until(reader, lambda _: False)
    else:
        old_pg.execute(statement)
        with pytest.raises(GapError, match="doesn't cover") as caught:
            PostgresLogReader(source, schemas).start(None)
        if "DROP TABLE" not in change:  # a table may be added, but nothing else is repaired in silence
            with pytest.raises(GapError, match="doesn't cover"):
                PostgresCatalog(source).prepare(schemas)
    assert says in caught.value.cause or caught.value.cause == "it doesn't exist"


@pytest.mark.parametrize("running", [True, False])
def test_a_table_made_anew_is_never_silent_whichever_look_finds_it_first(
    old_pg: Database, monkeypatch: pytest.MonkeyPatch, running: bool
) -> None:
    """It isn't in the publication, and it isn't the table that was dumped."""
    monkeypatch.setattr("migrator.adapters.sources.postgres.log.log_reader._LOOK_EVERY_S", 0.5)
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    anew = "DROP TABLE t; CREATE TABLE t (k int PRIMARY KEY, v text)"
    if not running:
        old_pg.execute(anew)
    named = pytest.raises(MigratorError, match=r"doesn't cover|was replaced by another table")
    with named, log_reader(source, schemas) as reader:
        if running:
            old_pg.execute(anew, "INSERT INTO t VALUES (1, 'x')")
        read_until(reader, lambda _: False)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("DROP TABLE t", "ADD TABLE t"), "it was changed and put back: public.t"),
        (("SET (publish = 'delete')", "SET (publish = 'insert, update, delete, truncate')"), "put back"),
    ],
)
def test_a_publication_changed_and_put_back_between_two_looks_is_never_silent(
    old_pg: Database, monkeypatch: pytest.MonkeyPatch, change: tuple[str, str], says: str
) -> None:
    monkeypatch.setattr("migrator.adapters.sources.postgres.log.log_reader._LOOK_EVERY_S", 0.2)
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    with log_reader(source, schemas) as reader:
        # Nobody reads while it happens: the next look finds the publication as it was.
        away, back = (f"ALTER PUBLICATION {source.slot} {each}" for each in change)
        old_pg.execute(away, "INSERT INTO t VALUES (1, 'lost')", back)
        with pytest.raises(GapError, match="doesn't cover") as caught:
            read_until(reader, lambda _: False)
    assert says in caught.value.cause


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"port": 1}, "can't be reached"),
        ({"database": "no_such_database"}, "no such database"),
        ({"user": "no_such_user"}, "refuses the login"),
    ],
)
def test_failed_logins_are_named_for_every_kind_of_connection(
    old_pg: Database, change: dict[str, object], says: str
) -> None:
    table(old_pg)
    source = source_of(old_pg)
    schemas = PostgresCatalog(source).tables(["t"])
    wrong = replace(source, server=replace(source.server, **change))  # type: ignore[arg-type]
    for attempt in (
        lambda: PostgresCatalog(wrong).tables(["t"]),
        lambda: PostgresLogReader(wrong, schemas).start(None),
        lambda: PostgresChunkReader(wrong).witness(),
    ):
        with pytest.raises(ConnectionFailed, match=says) as caught:
            attempt()
        assert caught.value.cause
        assert caught.value.remedy


def test_a_half_open_connection_is_found_and_reading_resumes(old_pg: Database) -> None:
    table(old_pg)
    direct = source_of(old_pg)
    schemas = prepared(direct, "t")
    with Proxy(direct.server.host, direct.server.port) as proxy:
        source = source_of(old_pg, host="127.0.0.1", port=proxy.port, silence_s=0.5)
        reader = PostgresLogReader(source, schemas)
        position = reader.start(None)
        read_until(reader, bool)
        quiet_until = time.monotonic() + 2.5
        read_until(reader, lambda _: time.monotonic() > quiet_until)  # idle but alive: it answers when asked
        proxy.stalled.set()
        old_pg.execute("INSERT INTO t VALUES (1, 'x')")
        with pytest.raises(ConnectionFailed, match="connection was lost") as caught:
            read_until(reader, lambda _: False)
        assert caught.value.retryable
        assert "no sign of life" in caught.value.cause
        reader.close()
    wait_for(old_pg, f"SELECT NOT active FROM pg_replication_slots WHERE slot_name = '{source.slot}'")
    with log_reader(direct, schemas, position) as reader:
        (change,) = changes(read_until(reader, lambda records: bool(changes(records))))
    assert change.after == ("1", "x")


def test_acknowledging_lets_the_server_forget(old_pg: Database) -> None:
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    old_pg.execute("INSERT INTO t VALUES (1, 'x')", "INSERT INTO t VALUES (2, 'y')")
    with log_reader(source, schemas) as reader:
        first, _ = parts(read_to(reader, PostgresCatalog(source).position()))
        reader.acknowledge(first.position)
    wait_for(old_pg, f"SELECT NOT active FROM pg_replication_slots WHERE slot_name = '{source.slot}'")
    state = old_pg.query(
        "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s", [source.slot]
    )
    # What was read but not acknowledged is kept, and the last one acknowledged: it proves which log this is.
    assert state == [(format_lsn(first.position.order),)]
    with log_reader(source, schemas, first.position) as reader:
        (again,) = changes(read_until(reader, lambda records: bool(changes(records))))
    assert again.after == ("2", "y")


def test_reading_from_further_on_lets_the_server_forget_nothing(old_pg: Database) -> None:
    """Who reads on from an event log of its own says nothing of what the target holds."""
    table(old_pg)
    source = source_of(old_pg)
    schemas = prepared(source, "t")
    slot = f"SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = '{source.slot}'"
    before = old_pg.query(slot)
    old_pg.execute("INSERT INTO t VALUES (1, 'x')", "INSERT INTO t VALUES (2, 'y')")
    with log_reader(source, schemas) as reader:
        first, _ = parts(read_to(reader, PostgresCatalog(source).position()))
    with log_reader(source, schemas, first.position) as reader:
        (later,) = changes(read_until(reader, lambda records: bool(changes(records))))
    assert later.after == ("2", "y")
    wait_for(old_pg, f"SELECT NOT active FROM pg_replication_slots WHERE slot_name = '{source.slot}'")
    assert old_pg.query(slot) == before
    with log_reader(source, schemas) as reader:
        found = changes(read_to(reader, PostgresCatalog(source).position()))
    assert [change.after for change in found] == [("1", "x"), ("2", "y")]
