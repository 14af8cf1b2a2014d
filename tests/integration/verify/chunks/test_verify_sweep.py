"""One table swept piece by piece: for which places the judge waits, and for which it has no need to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from psycopg import sql

from migrator.errors import VerifyError
from tests.fix_postgres_source import wait_for
from tests.integration.judged import settings_of
from tests.servers import Database
from verify.readers.chunk_keys import INTEGER, KeyColumn
from verify.readers.postgres.chunks import DIALECT
from verify.readers.postgres.session import open_views
from verify.readers.postgres.source import PostgresSource
from verify.readers.postgres.target import PostgresTarget
from verify.readers.snapshot import LedgerState, LogPlace
from verify.tables.hashed_by_servers.digest import Pair, pushed
from verify.tables.sweeps import chunk_sweep, pairing
from verify.tables.sweeps.chunk_choice import ChunkPlan
from verify.tables.sweeps.chunk_sweep import Sweep, Swept
from verify.tables.sweeps.pairing import Waited

pytestmark = pytest.mark.integration

ROWS = 40
FEW_WAITS = ROWS // 8
"""One wait, and some for what the server writes by itself (vacuum, running transactions): far from one a piece."""
LATE = "UPDATE {} SET note = 'late' WHERE id = 37"


class Swept40:
    """``thing`` and its copy ``item``, 40 rows each, in pieces of two; the pipeline is played by hand."""

    def __init__(self, old: Database, new: Database, folder: Path):
        self.old, self.new, self._folder = old, new, folder
        self.source = PostgresSource(settings_of(old), "m")
        self._sweeps = 0
        self.waits: list[LogPlace] = []
        self.acts: list[Callable[[], None]] = []
        for database, table in ((old, "thing"), (new, "item")):
            database.execute(
                f"CREATE TABLE {table} (id bigint PRIMARY KEY, note text)",
                f"INSERT INTO {table} SELECT g, 'n' || g FROM generate_series(1, {ROWS}) g",
            )
        new.execute(
            "CREATE SCHEMA migrator",
            "CREATE TABLE migrator.ledger (migration text, epoch bigint, segment bigint, position_order numeric,"
            " position_token text, checkpoint jsonb)",
            "INSERT INTO migrator.ledger VALUES ('m', 1, 1, 0, '', NULL)",
        )

    def applied(self, *statements: str) -> None:
        """What the pipeline does: the ledger moves with the rows, to the log's end."""
        order = self.source.position().order
        with self.new.connect(autocommit=False) as new:
            for statement in (*statements, f"UPDATE migrator.ledger SET position_order = {order}"):
                new.execute(statement)
            new.commit()

    def wait(self, place: LogPlace, ledger: Callable[[], LedgerState | None]) -> Waited:
        """Only a wait makes the pipeline go on; the server's own records in the log may be what is waited for."""
        self.waits.append(place)
        [(late,)] = self.old.query("SELECT note = 'late' FROM thing WHERE id = 37")
        self.applied(LATE.format("item") if late else "SELECT 1")
        state = ledger()
        assert state is not None
        return Waited(state.order >= place.order, "")

    def step(self, name: str) -> None:
        """The next act, behind a batch of pieces."""
        if name == "target read" and self.acts:
            self.acts.pop(0)()

    def sweep(self, rows: int = 2) -> Swept:
        with (
            self.source.chunks("thing") as old,
            PostgresTarget(settings_of(self.new), "m").chunks("item") as new,
        ):
            pairs = [Pair(*pair) for pair in zip(old.schema.columns, new.columns, strict=True)]
            key = (KeyColumn("id", "id", INTEGER),)
            made = pushed(("postgresql", "postgresql"), (DIALECT, DIALECT), pairs, key)
            plan = ChunkPlan("thing", key, new.columns, made)
            self._sweeps += 1
            folders = (self._folder / f"source-{self._sweeps}", self._folder / f"target-{self._sweeps}")
            return Sweep(plan, old, new, self.wait, self.step, rows, folders).everything()


@pytest.fixture
def swept(old_pg: Database, new_pg: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Swept40:
    monkeypatch.setattr(pairing, "AHEAD", 1)  # or all pieces would be read before the first act
    return Swept40(old_pg, new_pg, tmp_path)


def test_at_rest_there_is_one_wait(swept: Swept40) -> None:
    found = swept.sweep()
    assert (found.agreed, found.full, found.pieces) == (ROWS, [], ROWS // 2 + 2)
    assert 1 <= len(swept.waits) <= FEW_WAITS


def test_what_is_written_meanwhile_is_waited_for(swept: Swept40) -> None:
    swept.acts.append(lambda: swept.old.execute(LATE.format("thing")))
    found = swept.sweep()
    assert (found.agreed, found.full) == (ROWS, [])
    assert 2 <= len(swept.waits) <= FEW_WAITS + 1


def test_a_judge_that_takes_one_wait_for_all_reads_what_is_on_its_way(
    swept: Swept40, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Sweep._await

    def once(self: Sweep, *given: object) -> None:
        if not swept.waits:
            honest(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Sweep, "_await", once)
    swept.acts.append(lambda: swept.old.execute(LATE.format("thing")))
    found = swept.sweep()
    assert (len(found.full), found.source_rows) == (1, 1)
    assert found.agreed == ROWS - 1


@pytest.mark.parametrize("side", ["old", "new"])
def test_what_a_server_refuses_in_the_middle_ends_the_sweep(swept: Swept40, side: str) -> None:
    database, table = {"old": (swept.old, "thing"), "new": (swept.new, "item")}[side]
    swept.acts.append(lambda: database.execute(f"ALTER TABLE {table} RENAME note TO other"))
    with pytest.raises(VerifyError) as caught:
        swept.sweep()
    assert '"note" does not exist' in caught.value.cause
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("source")]


def test_pieces_grow_so_that_the_target_begins_early(swept: Swept40, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunk_sweep, "_FIRST_ROWS", 1)
    pieces: list[int] = []
    judged = Sweep._agrees

    def noted(self: Sweep, half: chunk_sweep._Half) -> bool:
        pieces.append(half.rows)
        return judged(self, half)

    monkeypatch.setattr(Sweep, "_agrees", noted)
    assert swept.sweep(16).agreed == ROWS
    assert pieces == [1, 2, 4, 8, 16, 9, 0, 0]  # after the last key there may be others


COUNTED = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier("public", "item"))
BLOCKED = sql.SQL("SELECT count(pg_advisory_xact_lock({}))").format(sql.Literal(7))


def test_what_is_asked_at_once_is_seen_in_one_view(swept: Swept40) -> None:
    """A row is deleted while the second of three queries hangs."""

    def deletes() -> None:
        with swept.new.connect() as holder:
            holder.execute("SELECT pg_advisory_lock(7)")
            held.set()
            wait_for(
                swept.new, "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted)"
            )
            holder.execute("DELETE FROM item WHERE id = 1")

    held, writing = threading.Event(), threading.Thread(target=deletes, daemon=True)
    writing.start()
    held.wait()
    with open_views(settings_of(swept.new)) as views:
        before, _, after = views.at_once(COUNTED, BLOCKED, COUNTED)
        writing.join()
        assert before == after == [(ROWS,)]
        assert views.at_once(COUNTED) == [[(ROWS - 1,)]]


def test_a_session_goes_on_after_a_query_that_was_refused(swept: Swept40) -> None:
    with open_views(settings_of(swept.new)) as views:
        with pytest.raises(VerifyError) as caught:
            views.at_once(COUNTED, sql.SQL("SELECT {}").format(sql.Identifier("nothing")))
        assert 'column "nothing" does not exist' in caught.value.cause
        assert views.at_once(COUNTED) == [[(ROWS,)]]
        assert swept.new.query(
            "SELECT state FROM pg_stat_activity WHERE application_name = 'migrator verify'"
        ) == [("idle",)]
