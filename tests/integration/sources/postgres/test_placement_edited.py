"""The placement of chunks is a setting that may be edited between two runs; what that needs is told, and works."""

from __future__ import annotations

import pytest

from migrator.errors import SourceError
from migrator.model.limits import CaptureLimits
from migrator.model.requests.request import WHOLE
from tests.fix_postgres_source import WATERMARK_TABLE
from tests.integration.capturing import Capturing, capturing
from tests.servers import Database

pytestmark = pytest.mark.integration

LIMITS = CaptureLimits(linger_s=0.01, heartbeat_s=0.05)


def begun(database: Database, placement: str) -> Capturing:
    """A table that was dumped under one placement, and changed since."""
    database.execute(
        "CREATE TABLE t (k int PRIMARY KEY, v text)",
        "ALTER TABLE t REPLICA IDENTITY FULL",
        "INSERT INTO t SELECT n, 'a' FROM generate_series(1, 20) n",
    )
    capture = capturing(database, ["t"], LIMITS, placement)
    capture.run(capture.dumped)
    database.execute("UPDATE t SET v = 'b' WHERE k < 5", "DELETE FROM t WHERE k = 7")
    return capture


def edited(database: Database, before: Capturing, placement: str, made: bool) -> Capturing:
    """The same migration under another placement; its control table is made as ``migrator run`` makes it."""
    if placement == "watermark" and not made:
        database.execute(*WATERMARK_TABLE)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tests.integration.capturing.WATERMARK_TABLE", ("SELECT 1",))
        patched.setattr("migrator.adapters.sources.postgres.catalog.PostgresCatalog.prepare", lambda *_: None)
        after = capturing(database, ["t"], LIMITS, placement)
    after.event_log, after.epoch, after.requests = before.event_log, before.epoch, before.requests
    return after


def goes_on(capture: Capturing, database: Database) -> None:
    """It brings what was changed since, and dumps again what is asked for, beside a writer's changes."""
    capture.requests.update(lambda book: book.start(tuple(capture.schemas), WHOLE))
    database.execute("UPDATE t SET v = 'c' WHERE k = 1")
    capture.run(capture.caught_up())
    (table,) = capture.schemas
    assert capture.held()[table] == capture.source(table)
    assert "c" in {row["v"] for row in capture.held()[table].values()}


@pytest.mark.parametrize(
    ("first", "then"), [("watermark", "witness"), ("witness", "message"), ("message", "witness")]
)
def test_a_placement_that_needs_nothing_of_the_publication_goes_on(
    old_pg: Database, first: str, then: str
) -> None:
    goes_on(edited(old_pg, begun(old_pg, first), then, first == "watermark"), old_pg)


def test_a_watermark_that_the_publication_lacks_is_told_and_the_remedy_works(old_pg: Database) -> None:
    """Not that the migration must be started anew: no change of the application's was left out."""
    before = begun(old_pg, "witness")
    after = edited(old_pg, before, "watermark", made=False)
    with pytest.raises(SourceError, match=r"what source\.placement") as caught:
        after.run(lambda: False)
    statement = caught.value.remedy.partition(": ")[2].partition(";")[0]
    assert statement.startswith("ALTER PUBLICATION")
    old_pg.execute(statement)
    goes_on(after, old_pg)
    back = edited(old_pg, after, "witness", made=True)
    goes_on(back, old_pg)
    goes_on(edited(old_pg, back, "watermark", made=True), old_pg)


def test_the_placement_set_back_works_too(old_pg: Database) -> None:
    before = begun(old_pg, "witness")
    after = edited(old_pg, before, "watermark", made=False)
    with pytest.raises(SourceError, match=r"what source\.placement"):
        after.run(lambda: False)
    goes_on(edited(old_pg, after, "witness", made=True), old_pg)
