"""After each poll the reader has a state that the source had: no transfer by half, no write before an earlier
one."""

from __future__ import annotations

import itertools
import random
import threading

import pytest

from migrator.model.event import RowChange
from tests.fix_change_tables import captured, read_all, started
from tests.fix_postgres_source import parts
from tests.servers import Database

pytestmark = pytest.mark.integration

ACCOUNTS, BALANCE, WRITERS, ROUNDS, POLLS = 10, 1000, 4, 120, 12
State = dict[str, dict[str, int]]


def _write(database: Database, number: int, polled: threading.Event) -> None:
    """Transfers between accounts, each counted in ``first``; then, in a transaction of its own, in ``second``.

    Until enough was polled: on a busy machine all that is written may be in a few polls.
    """
    chance = random.Random(number)
    with database.connect(autocommit=False) as connection:
        if number % 2:
            connection.execute("SET synchronous_commit = off")
            connection.commit()
        for n in itertools.count(1):
            if n > ROUNDS and polled.is_set():
                break
            one, other = sorted(chance.sample(range(ACCOUNTS), 2))
            amount = chance.randrange(-50, 50)
            connection.execute("UPDATE account SET v = v - %s WHERE k = %s", [amount, one])
            connection.execute("UPDATE account SET v = v + %s WHERE k = %s", [amount, other])
            connection.execute("UPDATE first SET v = %s WHERE k = %s", [n, number])
            connection.commit()
            connection.execute("UPDATE second SET v = %s WHERE k = %s", [n, number])
            connection.commit()


def _follow(state: State, changes: tuple[RowChange, ...]) -> None:
    for change in changes:
        assert change.before is not None
        assert change.after is not None
        table, key, value = state[change.table.name], str(change.after[0]), int(str(change.after[1]))
        assert table[key] == int(str(change.before[1])), "a change begins where the last one of its row ended"
        table[key] = value


def test_every_poll_ends_in_a_state_that_the_source_had(old_pg: Database) -> None:
    old_pg.execute(
        *(
            f"CREATE TABLE {name} (k int PRIMARY KEY, v int NOT NULL)"
            for name in ("account", "first", "second")
        ),
        f"INSERT INTO account SELECT g, {BALANCE} FROM generate_series(0, {ACCOUNTS - 1}) g",
        f"INSERT INTO first SELECT g, 0 FROM generate_series(0, {WRITERS - 1}) g",
        "INSERT INTO second SELECT * FROM first",
    )
    source, schemas = captured(old_pg, "account", "first", "second")
    state: State = {
        name: {str(key): value for key, value in old_pg.query(f"SELECT k, v FROM {name}")}
        for name in ("account", "first", "second")
    }
    polled = threading.Event()
    writers = [threading.Thread(target=_write, args=[old_pg, n, polled], daemon=True) for n in range(WRITERS)]
    polls, largest = 0, 0
    with started(source, schemas) as reader:
        for writer in writers:
            writer.start()
        while any(writer.is_alive() for writer in writers):
            for part in parts(reader.read(0.1)):
                assert part.last
                _follow(state, part.changes)
                polls, largest = polls + 1, max(largest, len(part.changes))
                if polls == POLLS:
                    polled.set()
                assert sum(state["account"].values()) == ACCOUNTS * BALANCE, "a transfer by half (I3)"
                for key, count in state["second"].items():
                    assert state["first"][key] - 1 <= count <= state["first"][key], (
                        "out of session order (I2)"
                    )
        # Everything may have been delivered already: then only what is written now says that it was.
        old_pg.execute("UPDATE account SET v = v WHERE k = 0")
        for part in parts(read_all(reader, source)):
            _follow(state, part.changes)
    for name, rows in state.items():
        assert rows == {str(key): value for key, value in old_pg.query(f"SELECT k, v FROM {name}")}
    assert polls >= POLLS
    assert largest > 4, "no poll held more than one transaction: nothing was shown"
