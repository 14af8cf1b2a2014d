"""One table swept piece by piece: for which places the judge waits, and for which it has no need to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from migrator.errors import VerifyError
from tests.integration.judged import settings_of
from tests.servers import Database
from verify import chunk_sweep
from verify.chunk_choice import ChunkPlan
from verify.chunk_keys import INTEGER, KeyColumn
from verify.chunk_sweep import Sweep, Swept, Waited
from verify.digest import Pair, pushed
from verify.postgres_chunks import DIALECT
from verify.read_postgres import PostgresSource
from verify.snapshot import LedgerState, LogPlace
from verify.target_reader import PostgresTarget

pytestmark = pytest.mark.integration

ROWS = 40
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
        """Only a wait makes the pipeline go on."""
        self.waits.append(place)
        self.applied(LATE.format("item") if len(self.waits) > 1 else "SELECT 1")
        state = ledger()
        assert state is not None
        return Waited(state.order >= place.order, "")

    def step(self, name: str) -> None:
        """The next act, behind a batch of pieces."""
        if name == "target read" and self.acts:
            self.acts.pop(0)()

    def sweep(self) -> Swept:
        with (
            self.source.chunks("thing") as old,
            PostgresTarget(settings_of(self.new), "m").chunks("item") as new,
        ):
            pairs = [Pair(*pair) for pair in zip(old.schema.columns, new.columns, strict=True)]
            made = pushed(("postgresql", "postgresql"), (DIALECT, DIALECT), pairs)
            plan = ChunkPlan("thing", (KeyColumn("id", "id", INTEGER),), new.columns, made)
            self._sweeps += 1
            folders = (self._folder / f"source-{self._sweeps}", self._folder / f"target-{self._sweeps}")
            return Sweep(plan, old, new, self.wait, self.step, 2, folders).everything()


@pytest.fixture
def swept(old_pg: Database, new_pg: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Swept40:
    monkeypatch.setattr(chunk_sweep, "AHEAD", 1)  # or all pieces would be read before the first act
    return Swept40(old_pg, new_pg, tmp_path)


def test_at_rest_there_is_one_wait(swept: Swept40) -> None:
    found = swept.sweep()
    assert (found.agreed, found.full, found.pieces) == (ROWS, [], ROWS // 2 + 1)
    assert len(swept.waits) == 1


def test_what_is_written_meanwhile_is_waited_for(swept: Swept40) -> None:
    swept.acts.append(lambda: swept.old.execute(LATE.format("thing")))
    found = swept.sweep()
    assert (found.agreed, found.full) == (ROWS, [])
    assert len(swept.waits) == 2


def test_a_judge_that_takes_one_wait_for_all_reads_what_is_on_its_way(
    swept: Swept40, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = Sweep._note

    def once(self: Sweep, *given: object) -> None:
        if not swept.waits:
            honest(self, *given)  # type: ignore[arg-type]

    monkeypatch.setattr(Sweep, "_note", once)
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
