"""XA transactions: their rows are logged at XA PREPARE, and delivered at XA COMMIT or never."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from migrator.adapters.sources.binlog.events.events import Event
from migrator.adapters.sources.binlog.transactions import prepared
from migrator.adapters.sources.binlog.transactions.assembler import TransactionAssembler
from migrator.adapters.sources.binlog.transactions.log_reader import BinlogReader
from migrator.errors import SchemaError, SourceError
from migrator.model.event import LogProgress, Row, TransactionPart
from migrator.model.position import Position
from tests.integration.binlog_engine import BinlogEngine
from tests.integration.binlog_reading import fold, read_to, read_until, source_of
from tests.integration.sources.binlog_preflight import found_besides_accounts
from tests.servers import Database

pytestmark = pytest.mark.integration


def xa_prepare(database: Database, xid: str, *statements: str) -> None:
    """Prepares a transaction in a session that ends at once."""
    database.execute()
    with database.connect() as connection, connection.cursor() as cursor:
        for statement in (f"XA START '{xid}'", *statements, f"XA END '{xid}'", f"XA PREPARE '{xid}'"):
            cursor.execute(statement)


def decide(database: Database, outcome: str, xid: str) -> None:
    """XA COMMIT or XA ROLLBACK in another session, once the first one has let the transaction go."""
    deadline = threading.Event()
    for _ in range(200):
        try:
            database.execute(f"XA {outcome} '{xid}'")
            return
        except Exception as error:
            if error.args[0] not in (1397, 1399):
                raise
            deadline.wait(0.02)
    raise TimeoutError(f"XA {outcome} '{xid}' is not possible")


@pytest.fixture
def tidy(accounts: Database) -> Iterator[Database]:
    """No transaction stays prepared on the shared server."""
    yield accounts
    for _, gtrid, _, data in accounts.query("XA RECOVER"):
        xid = data if isinstance(data, str) else data.decode()
        accounts.execute(f"XA ROLLBACK '{xid[:gtrid]}'")


def story(database: Database) -> None:
    """Four prepared transactions that overlap each other and plain ones; one is rolled back, one is foreign."""
    database.execute("INSERT INTO account VALUES (1, 'plain', 1), (2, 'plain', 2), (3, 'plain', 3)")
    xa_prepare(database, "kept", "UPDATE account SET name = 'kept' WHERE id = 1", "SAVEPOINT s")
    database.execute("INSERT INTO account VALUES (4, 'plain', 4)")
    xa_prepare(
        database, "undone", "DELETE FROM account WHERE id = 2", "INSERT INTO account VALUES (9, 'x', 9)"
    )
    xa_prepare(database, "foreign", "INSERT INTO other VALUES (5)")
    database.execute("FLUSH BINARY LOGS")
    decide(database, "ROLLBACK", "undone")
    xa_prepare(database, "late", "INSERT INTO account VALUES (5, 'late', 5), (6, 'late', 6)")
    database.execute("UPDATE account SET name = 'after' WHERE id = 2")
    decide(database, "COMMIT", "kept")
    decide(database, "COMMIT", "foreign")
    database.execute("UPDATE account SET name = 'again' WHERE id = 1")
    decide(database, "COMMIT", "late")
    with database.connect() as connection, connection.cursor() as cursor:
        for statement in ("XA START 'one'", "DELETE FROM account WHERE id = 3", "XA END 'one'"):
            cursor.execute(statement)
        cursor.execute("XA COMMIT 'one' ONE PHASE")


DELIVERED = [
    [("1", "plain"), ("2", "plain"), ("3", "plain")],
    [("4", "plain")],
    [("2", "after")],
    [("1", "kept")],
    [("1", "again")],
    [("5", "late"), ("6", "late")],
    [None],
]


def shown(part: TransactionPart) -> list[tuple[Any, ...] | None]:
    return [change.after[:2] if change.after else None for change in part.changes]


def rows(database: Database) -> dict[tuple[Any, ...], Row]:
    return {
        (str(key),): (str(key), name, str(balance))
        for key, name, balance in database.query("SELECT * FROM account")
    }


def test_rows_come_at_the_commit_and_rolled_back_ones_never(
    engine: BinlogEngine, tidy: Database, reader: BinlogReader
) -> None:
    story(tidy)
    read = read_to(reader, engine.end(source_of(tidy)))
    assert [shown(part) for part in read.parts()] == DELIVERED
    assert fold(read.changes(), (0,)) == rows(tidy)
    orders = [part.position.order for part in read.parts()]
    assert orders == sorted(set(orders))
    assert len({part.id for part in read.parts()}) == len(DELIVERED)


def test_delivering_at_the_prepare_would_be_a_phantom(
    engine: BinlogEngine, tidy: Database, reader: BinlogReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What plain log readers do, in this test only: the check above can fail."""

    def at_once(self: TransactionAssembler, event: Event) -> None:
        held, self._held = self._held, None
        assert held is not None
        self._replay(held, event)

    monkeypatch.setattr(TransactionAssembler, "_xa_prepared", at_once)
    tidy.execute("INSERT INTO account VALUES (1, 'plain', 1)")
    xa_prepare(tidy, "undone", "UPDATE account SET name = 'never' WHERE id = 1")
    decide(tidy, "ROLLBACK", "undone")
    read = read_to(reader, engine.end(source_of(tidy)))
    assert fold(read.changes(), (0,))[("1",)] == ("1", "never", "1.00")
    assert rows(tidy)[("1",)] == ("1", "plain", "1.00")


def test_reading_resumes_at_any_place_with_undecided_transactions(
    engine: BinlogEngine, tidy: Database, reader: BinlogReader
) -> None:
    story(tidy)
    end = engine.end(source_of(tidy))
    whole = read_to(reader, end).parts()
    assert len(whole) == len(DELIVERED)
    # every place on the way, those of prepares and rollbacks included: one event at a time says them all
    places: list[Position] = [reader.start(whole[0].position)]
    while places[-1].order < end.order:
        assert reader._assembler is not None
        for event in [*reader._raw, *reader._stream.events(0.5)]:  # type: ignore[union-attr]
            reader._assembler.feed([event])
            places += [
                record.position
                for record in reader._assembler.take()
                if isinstance(record, LogProgress) or (isinstance(record, TransactionPart) and record.last)
            ]
        reader._raw = []
    assert len({place.order for place in places}) > 10
    for place in places:
        assert reader.start(place) == place
        again = read_to(reader, end).parts() if place < end else []
        assert [(part.id, part.position, part.changes) for part in again] == [
            (part.id, part.position, part.changes) for part in whole if part.position > place
        ]


def test_a_place_remembers_only_what_is_undecided(
    engine: BinlogEngine, tidy: Database, reader: BinlogReader
) -> None:
    xa_prepare(tidy, "first", "INSERT INTO account VALUES (1, 'a', 1)")
    xa_prepare(tidy, "foreign", "INSERT INTO other VALUES (1)")
    token = read_until(reader, lambda read: "foreign" in str(read.records)).records[-1].position.token  # type: ignore[union-attr]
    assert '"from": "' in token
    decide(tidy, "ROLLBACK", "first")
    decide(tidy, "ROLLBACK", "foreign")
    read = read_to(reader, engine.end(source_of(tidy)))
    token = read.records[-1].position.token  # type: ignore[union-attr]
    assert '"from"' not in token
    assert '"foreign"' not in token


def test_large_ones_are_held_in_a_file_and_come_in_parts(
    engine: BinlogEngine, tidy: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepared, "SPOOL_BYTES", 10_000)
    source = source_of(tidy, part_rows=100)
    reader, _ = engine.started(source, "account")
    values = ", ".join(f"({number}, 'n{number}', {number})" for number in range(950))
    xa_prepare(tidy, "large", f"INSERT INTO account VALUES {values}", "DELETE FROM account WHERE id < 150")
    read = read_to(reader, engine.end(source))
    assert read.changes() == []
    assert reader._assembler is not None
    (held,) = reader._assembler._prepared._held.values()
    assert held._events._rolled  # type: ignore[attr-defined]
    decide(tidy, "COMMIT", "large")
    most = 0
    while not read.parts() or not read.parts()[-1].last:
        records = reader.read(0.2)
        most = max(most, sum(len(r.changes) for r in records if isinstance(r, TransactionPart)))
        read.records += records
    reader.close()
    assert most <= 900  # the rows of one event at a time, which the server makes of some 8 KiB
    assert len(read.parts()) == 12
    assert len({(part.id, part.position) for part in read.parts()}) == 1
    assert fold(read.changes(), (0,)).keys() == {(str(number),) for number in range(150, 950)}


def test_a_first_start_waits_by_name_for_what_was_prepared_before(
    engine: BinlogEngine, tidy: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("migrator.adapters.sources.binlog.transactions.log_reader._DECIDED_S", 0.2)
    xa_prepare(tidy, "early", "INSERT INTO account VALUES (1, 'early', 1)")
    source = source_of(tidy, silence_s=2.0)
    schemas = engine.catalog(source).tables(["account"])
    log = engine.log_reader(source, schemas)
    with pytest.raises(SourceError, match="prepared and not decided") as waiting:
        log.start(None)
    assert waiting.value.retryable
    assert "X'6561726c79',X'',1" in str(waiting.value)
    (finding,) = found_besides_accounts(engine, tidy)
    assert (finding.check, finding.fatal) == ("xa", False)
    assert finding.remedy == "XA COMMIT or XA ROLLBACK X'6561726c79',X'',1"
    decide(tidy, "COMMIT", "early")
    log.start(None)
    (chunk,) = engine.dump(source, schemas[0], 10)
    assert chunk.rows["name"].to_pylist() == ["early"]
    assert read_to(log, engine.end(source)).changes() == []
    log.close()


def test_what_is_prepared_during_a_first_start_is_not_lost(
    engine: BinlogEngine, tidy: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = source_of(tidy, silence_s=2.0)
    log = engine.log_reader(source, engine.catalog(source).tables(["account"]))
    visible, asked = log._visible, 0

    def meanwhile(connection: Any) -> Position:
        nonlocal asked
        asked += 1
        if asked < 2:
            return visible(connection)
        xa_prepare(tidy, "meanwhile", "INSERT INTO account VALUES (1, 'meanwhile', 1)")
        begin = visible(connection)
        decide(tidy, "COMMIT", "meanwhile")
        return begin

    monkeypatch.setattr(log, "_visible", meanwhile)
    begin = log.start(None)
    monkeypatch.undo()
    assert '"from"' in begin.token
    read = read_to(log, engine.end(source))
    assert [change.after for change in read.changes()] == [("1", "meanwhile", "1.00")]
    log.close()


def test_a_commit_of_unknown_rows_stops_by_name(engine: BinlogEngine, tidy: Database) -> None:
    xa_prepare(tidy, "unknown", "INSERT INTO account VALUES (1, 'unknown', 1)")
    source = source_of(tidy)
    log = engine.log_reader(source, engine.catalog(source).tables(["account"]))
    log.start(engine.end(source))  # a place that doesn't know of it, as no start of ours would choose
    decide(tidy, "COMMIT", "unknown")
    with pytest.raises(SourceError, match="prepared before reading began"):
        read_until(log, lambda _: False)
    log.close()


def test_statements_in_a_prepared_transaction_stop_at_its_commit(
    engine: BinlogEngine, tidy: Database, reader: BinlogReader
) -> None:
    statement = "SET SESSION binlog_format = 'STATEMENT'"
    for xid in ("undone", "kept"):
        with tidy.connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            for step in (f"XA START '{xid}'", "INSERT INTO account VALUES (1, 'a', 1)", f"XA END '{xid}'"):
                cursor.execute(step)
            cursor.execute(f"XA PREPARE '{xid}'")
        if xid == "undone":
            decide(tidy, "ROLLBACK", xid)
            assert read_to(reader, engine.end(source_of(tidy))).changes() == []
    decide(tidy, "COMMIT", "kept")
    with pytest.raises(SourceError, match="logged as a statement"):
        read_until(reader, lambda _: False)


def test_a_table_changed_while_rows_of_it_are_prepared_is_named(
    engine: BinlogEngine, tidy: Database, reader: BinlogReader
) -> None:
    """Both servers refuse the ALTER while they run; one that was restarted might not."""
    xa_prepare(tidy, "held", "INSERT INTO account VALUES (1, 'a', 1)")
    read_to(reader, engine.end(source_of(tidy)))
    assert reader._assembler is not None
    reader._assembler._announced[next(iter(reader._tables)).id] = "another version"
    reader._assembler._latest.clear()
    decide(tidy, "COMMIT", "held")
    with pytest.raises(SchemaError, match="while an XA transaction on it was prepared"):
        read_until(reader, lambda _: False)
