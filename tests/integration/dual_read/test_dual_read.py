"""Dual read on real servers under hot writes: mere lag is never a bug, what is wrong is found."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.dual_read.dual_stream import MIGRATION, ROWS, SELECT_NEW, SELECT_OLD, WRONG, Stream
from tests.integration.judged import settings_of
from tests.servers import Database
from verify.dual_read.places import ended
from verify.dual_read.queries import QueryPair, pairs_of
from verify.dual_read.report import write_reports
from verify.dual_read.result import DualReadResult
from verify.dual_read.runner import Plan, run
from verify.verdict import Verdict

pytestmark = pytest.mark.integration

ALL_IDS = {"id": {"from": 1, "to": ROWS}}
HOT = {"id": {"from": 1, "to": 4}}
HOT_REPEATS = int(os.environ.get("MIGRATOR_DUAL_REPEATS", "40"))
"""160 comparisons; seen to hold for many thousands with more."""


def pair(new: str = SELECT_NEW, parameters: object = None, **more: object) -> QueryPair:
    entry = {"name": "a person", "old": SELECT_OLD, "new": new, "parameters": parameters or ALL_IDS, **more}
    return pairs_of({"format": 1, "queries": [entry]}, "test")[0]


@pytest.fixture(params=["postgresql", "mariadb", pytest.param("mysql", marks=pytest.mark.slow)])
def stream(request: pytest.FixtureRequest, new_pg: Database) -> Iterator[Stream]:
    """A PostgreSQL target after each source; nothing runs yet."""
    name = {"postgresql": "old_pg", "mariadb": "old_maria", "mysql": "old_mysql"}[request.param]
    made = Stream(request.getfixturevalue(name), new_pg)
    yield made
    made.close()


def compared(stream: Stream, *pairs: QueryPair, **plan: object) -> DualReadResult:
    chosen = Plan(**{"settle_s": 60.0, "follow_ups": 3, **plan})  # type: ignore[arg-type]
    return run(settings_of(stream.old), settings_of(stream.new), MIGRATION, pairs, chosen)


def test_hot_writes_are_lag_and_never_a_bug(stream: Stream) -> None:
    stream.start()
    (found,) = compared(stream, pair(parameters=HOT), repeat=HOT_REPEATS, settle_s=5.0).pairs
    assert (found.compared, found.bug, found.semantic) == (4 * HOT_REPEATS, 0, 0)
    assert found.match > 0
    assert found.lag > 0
    assert stream.writes > 100


def test_a_wrong_row_is_found_under_hot_writes(stream: Stream) -> None:
    stream.spoil()
    stream.start()
    result = compared(stream, pair(parameters={"id": [2, WRONG, 16]}))
    (found,) = result.pairs
    assert (result.verdict, found.bug, found.compared) == (Verdict.DIFFERENT, 1, 3)
    (sample,) = [each for each in found.samples if each.outcome.value == "bug"]
    assert sample.parameters == (("id", "9"),)
    assert [(c.column, c.old, c.new) for c in sample.cells] == [("visits", "0", "1")]
    assert sample.source_low
    assert sample.source_high
    assert sample.target_at


def test_what_stands_still_is_judged_at_once(stream: Stream, tmp_path: Path) -> None:
    equal = compared(stream, pair())
    assert (equal.verdict, equal.pairs[0].match) == (Verdict.EQUAL, ROWS)
    stream.new.execute(
        "UPDATE client SET price = 1.2346 WHERE id = 3", "UPDATE client SET full_name = 'NAME 4' WHERE id = 4"
    )
    result = compared(stream, pair(), settle_s=20)
    (found,) = result.pairs
    assert (result.verdict, found.bug, found.semantic, found.match) == (Verdict.DIFFERENT, 1, 1, ROWS - 2)
    assert dict(found.causes)["case"] == 1
    write_reports(result, tmp_path)
    document = json.loads((tmp_path / "dual-read.json").read_text())
    assert (document["format"], document["exit_code"], document["verdict"]) == (1, 1, "different")
    password = settings_of(stream.old).server.password
    assert all(not password or password not in file.read_text() for file in tmp_path.iterdir())


def test_a_wrong_query_is_found_and_an_accepted_cause_is_none(stream: Stream) -> None:
    wrong = pair(SELECT_NEW.replace("id = :id", "id = :id + 1"), {"id": [1, 2]}, name="wrong row")
    refused = pair(SELECT_NEW.replace("seen", "no_such_column"), {"id": [1]}, name="refused")
    shouting = SELECT_NEW.replace("full_name", "upper(full_name)")
    named = pair(shouting, {"id": [1, 2]}, name="named")
    accepted = pair(shouting, {"id": [1, 2]}, name="accepted", accept=["case"])
    result = compared(stream, wrong, refused, named, accepted, settle_s=20)
    shown = {p.name: (p.verdict, p.bug, p.semantic, p.accepted) for p in result.pairs}
    assert shown == {
        "wrong row": (Verdict.DIFFERENT, 2, 0, 0),
        "refused": (Verdict.DIFFERENT, 1, 0, 0),
        "named": (Verdict.DIFFERENT, 0, 2, 0),
        "accepted": (Verdict.EQUAL, 0, 0, 2),
    }


def test_a_target_that_does_not_follow_is_unknown(stream: Stream) -> None:
    stream.old.execute("UPDATE person SET visits = visits + 1 WHERE id = 7")
    result = compared(stream, pair(parameters={"id": [6, 7]}), settle_s=2)
    (found,) = result.pairs
    assert (result.verdict, found.match, found.unknown, found.bug) == (Verdict.UNKNOWN, 1, 1, 0)


def test_nothing_is_ever_written(stream: Stream) -> None:
    """A query that writes, hidden where the file's check can't see it, is refused by the server."""
    if stream.old.kind == "postgresql":
        stream.old.execute(
            "CREATE FUNCTION sneaky(int) RETURNS int LANGUAGE sql AS"
            " 'UPDATE person SET visits = 77 WHERE id = $1 RETURNING id'"
        )
    else:
        stream.old.execute(
            "CREATE FUNCTION sneaky(n int) RETURNS int DETERMINISTIC MODIFIES SQL DATA"
            " BEGIN UPDATE person SET visits = 77 WHERE id = n; RETURN n; END"
        )
    entry = {"name": "sneaky", "old": "SELECT sneaky(1)", "new": "SELECT 1"}
    result = compared(stream, *pairs_of({"format": 1, "queries": [entry]}, "test"))
    assert result.verdict is Verdict.UNKNOWN
    assert "read" in result.pairs[0].reason.lower()
    assert stream.old.query("SELECT visits FROM person WHERE id = 1") == [(0,)]


def test_a_transaction_that_has_not_ended_may_be_in_the_log_already(old_pg: Database) -> None:
    """What a commit that waits for a standby looks like from outside: nothing surely contains it yet."""
    old_pg.execute("CREATE TABLE t (id int)")
    with old_pg.connect() as judge:
        assert ended(judge, 5)
        with old_pg.connect(autocommit=False) as writer:
            writer.execute("INSERT INTO t VALUES (1)")
            assert not ended(judge, 0.05)
        assert ended(judge, 5)


def test_parameters_are_drawn(stream: Stream) -> None:
    drawn = {"from": "old", "query": "SELECT id FROM person WHERE id < 6"}
    (chosen,) = pairs_of(
        {"format": 1, "queries": [{"name": "p", "old": SELECT_OLD, "new": SELECT_NEW, "draw": drawn}]}, "test"
    )
    assert compared(stream, chosen).pairs[0].match == 5
