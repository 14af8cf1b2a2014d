"""What `migrator grants --dual-read` prints is enough for a dual read, and nothing of it can be left out."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from migrator.adapters.sources.postgres.change_tables.catalog import ChangeTableCatalog
from migrator.errors import MigratorError
from migrator.model.codecs.codec import checkpoint_to_json
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import TableId
from tests.fix_change_tables import captured
from tests.integration.commands.test_grants import single_rights
from tests.integration.dual_read.dual_stream import MIGRATION, WRONG, Stream
from tests.integration.dual_read.test_dual_read import pair
from tests.integration.dual_read.test_dual_read_mysql import PAIRS
from tests.servers import Database, server_of
from verify.dual_read.engines import source_grants, target_grants
from verify.dual_read.result import PairResult
from verify.dual_read.runner import Plan, run
from verify.settings import ServerSettings
from verify.verdict import Verdict

pytestmark = pytest.mark.integration

BY_TRIGGERS = "postgresql to postgresql, by change tables"


@dataclass
class Poor:
    """A stream, both logins with what was printed, and each statement with its side."""

    stream: Stream
    logins: tuple[ServerSettings, ServerSettings]
    needed: list[tuple[Database, str]]
    perhaps: list[str]


@pytest.fixture(params=["postgresql to postgresql", *PAIRS])
def poor(request: pytest.FixtureRequest) -> Iterator[Poor]:
    old, new = (request.getfixturevalue(name) for name in PAIRS.get(request.param, ("old_pg", "new_pg")))
    stream, logins, needed = Stream(old, new), [], []
    scripts = []
    by_triggers = request.param == BY_TRIGGERS
    if by_triggers:
        stands_at(new, ChangeTableCatalog(captured(old, "person")[0]).position())
    for database, table, printed in ((old, "person", source_grants), (new, "client", target_grants)):
        login = ServerSettings(
            server_of(database, user=f"reader_{database.database[-8:]}", password="poor", tls="prefer"),
            change_tables=by_triggers and database is old,
        )
        script = printed(login, [table])
        if database.kind == "postgresql":
            database.execute(
                f"REVOKE ALL ON DATABASE {database.database} FROM PUBLIC",
                "REVOKE ALL ON SCHEMA public FROM PUBLIC",
            )
        database.execute(script.make.rstrip(";").replace("'...'", "'poor'"), *script.needed)
        logins.append(login)
        scripts.append((database, script))
        needed += [(database, statement) for statement in script.needed]
    perhaps = [statement for statement, _ in scripts[0][1].perhaps if "<" not in statement]
    yield Poor(stream, (logins[0], logins[1]), needed, perhaps)
    stream.close()
    for database, script in scripts:
        if database.kind == "postgresql":
            database.execute(f"DROP OWNED BY {script.account} CASCADE", f"DROP ROLE {script.account}")
        else:
            database.execute(f"DROP USER {script.account}")


def stands_at(new: Database, position: Position) -> None:
    """The ledger of a pipeline that follows change tables."""
    dumps = (TableDump(TableId("public", "person"), done=True),)
    checkpoint = json.dumps(checkpoint_to_json(Checkpoint(position, dumps=dumps)))
    with new.connect() as connection:
        connection.execute(
            "UPDATE migrator.ledger SET position_order = %s, position_token = %s, checkpoint = %s",
            (position.order, position.token, checkpoint),
        )


def asked(poor: Poor, number: int) -> PairResult:
    """The answer for one row while nobody writes and no migration runs."""
    plan = Plan(settle_s=1.0, timeout_s=10.0, workers=1)
    (found,) = run(*poor.logins, MIGRATION, [pair(parameters={"id": [number]})], plan).pairs
    return found


def told(poor: Poor) -> str:
    """What a dual read of an equal row tells; empty where it just matches."""
    try:
        found = asked(poor, WRONG + 1)
    except MigratorError as error:
        return str(error)
    return "" if found.match == 1 else found.reason or found.causes[0][0]


def test_the_printed_rights_are_enough_and_none_is_superfluous(poor: Poor) -> None:
    assert told(poor) == ""
    for database, statement in poor.needed:
        for take, give in single_rights(statement, database.user):
            database.execute(take)
            missed = told(poor)
            database.execute(give)
            assert missed, f"nobody misses it: {take}"
            assert re.search("denied|does not exist", missed)
    assert told(poor) == "", "not all was given back, so it wasn't the missing rights alone"


@pytest.mark.parametrize(
    "poor", ["postgresql to postgresql", "postgresql to mysql", BY_TRIGGERS], indirect=True
)
def test_without_a_running_migration_slot_or_change_tables_tell_lag_from_a_bug(poor: Poor) -> None:
    poor.stream.new.execute(f"UPDATE client SET seen = 1 WHERE id = {WRONG}")
    assert asked(poor, WRONG).unknown == 1
    poor.stream.old.execute(*poor.perhaps)
    assert asked(poor, WRONG).bug == 1


@pytest.mark.parametrize("poor", [BY_TRIGGERS], indirect=True)
def test_rights_on_change_tables_are_both_needed_and_show_what_waits(poor: Poor) -> None:
    old = poor.stream.old
    old.execute(*poor.perhaps)
    assert len(poor.perhaps) == 2
    poor.stream.new.execute(f"UPDATE client SET seen = 1 WHERE id = {WRONG}")
    for give in poor.perhaps:
        old.execute(give.replace("GRANT", "REVOKE").replace(" TO ", " FROM "))
        assert asked(poor, WRONG).unknown == 1, give
        old.execute(give)
    assert asked(poor, WRONG).bug == 1
    old.execute(f"UPDATE person SET visits = visits + 1 WHERE id = {WRONG}")
    assert asked(poor, WRONG).bug == 0, "a change waits that might be the reason"


def test_they_are_enough_under_writes(poor: Poor) -> None:
    poor.stream.spoil()
    poor.stream.start()
    mixed = pair(parameters={"id": [1, 2, WRONG]})
    result = run(*poor.logins, MIGRATION, [mixed], Plan(settle_s=60.0, workers=3))
    (found,) = result.pairs
    assert (result.verdict, found.bug, found.unknown) == (Verdict.DIFFERENT, 1, 0)
