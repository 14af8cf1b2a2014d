"""What would lose changes of change tables silently: each is found, by name, and nothing is delivered past it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from migrator.adapters.sources.postgres.change_tables.catalog import ChangeTableCatalog
from migrator.adapters.sources.postgres.change_tables.log_reader import ChangeTableLogReader
from migrator.adapters.sources.postgres.change_tables.place import Place
from migrator.errors import GapError, MigratorError, SchemaError, SourceError
from migrator.model.position import Position
from tests.fix_change_tables import captured, read_changes, source_of, started
from tests.servers import Database, PostgresServer

pytestmark = pytest.mark.integration

CAPTURE = '"!migrator_capture"'
LOST = "INSERT INTO t VALUES (50, 'lost')"


@pytest.fixture
def old(old_pg: Database) -> Database:
    old_pg.execute("CREATE TABLE t (k int PRIMARY KEY, v text)", "INSERT INTO t VALUES (1, 'a'), (2, 'b')")
    return old_pg


DISTURBED: dict[str, tuple[list[str], type[MigratorError], str]] = {
    "disabled for a moment": (
        [f"ALTER TABLE t DISABLE TRIGGER {CAPTURE}", LOST, f"ALTER TABLE t ENABLE ALWAYS TRIGGER {CAPTURE}"],
        GapError,
        "was changed or replaced",
    ),
    "disabled": (
        [f"ALTER TABLE t DISABLE TRIGGER {CAPTURE}", LOST],
        GapError,
        "isn't enabled for all sessions",
    ),
    "dropped": ([f"DROP TRIGGER {CAPTURE} ON t", LOST], GapError, "is missing"),
    "function replaced": (
        [
            'CREATE OR REPLACE FUNCTION migrator_cdc."public_t_fn"() RETURNS trigger LANGUAGE plpgsql'
            " AS 'BEGIN RETURN NULL; END'",
            LOST,
        ],
        GapError,
        "doesn't do what it must",
    ),
    "change table replaced": (
        [
            'CREATE TABLE migrator_cdc.other (LIKE migrator_cdc."public_t_CT" INCLUDING ALL)',
            'DROP TABLE migrator_cdc."public_t_CT"',
            'ALTER TABLE migrator_cdc.other RENAME TO "public_t_CT"',
        ],
        GapError,
        "was changed or replaced",
    ),
    "column added": (["ALTER TABLE t ADD COLUMN w int"], SchemaError, "columns differ: w"),
    "column retyped": (["ALTER TABLE t ALTER COLUMN v TYPE varchar(9)"], SchemaError, "columns differ: v"),
    "column dropped": (["ALTER TABLE t DROP COLUMN v"], SchemaError, "columns differ: v"),
    "key changed": (
        ["ALTER TABLE t ALTER COLUMN v SET NOT NULL, DROP CONSTRAINT t_pkey, ADD PRIMARY KEY (v)"],
        SchemaError,
        "its key",
    ),
    "truncated": (["TRUNCATE t"], SourceError, "emptied by TRUNCATE"),
    "deleted unread": (["SELECT migrator_cdc.forget('9999999'::xid8, 100)"], GapError, "have been deleted"),
}


@pytest.mark.each_value
@pytest.mark.parametrize("name", DISTURBED)
@pytest.mark.parametrize("running", [True, False], ids=["while reading", "between two runs"])
def test_a_disturbance_stops_the_reader_and_is_named(old: Database, name: str, running: bool) -> None:
    statements, error, words = DISTURBED[name]
    source, schemas = captured(old, "t")
    with started(source, schemas) as reader:
        old.execute("INSERT INTO t VALUES (3, 'before')")
        assert len(read_changes(reader, source)) == 1
        after = position_of(reader)
        if running:
            old.execute(*statements)
            with pytest.raises(error, match=words):
                read_changes(reader, source)
    if not running:
        old.execute(*statements)
    with pytest.raises(error, match=words), started(source, schemas, after) as again:
        read_changes(again, source)


def position_of(reader: ChangeTableLogReader) -> Position:
    """Where a reader stands, with all that its token says."""
    place = reader._place
    assert place is not None
    return place.position()


def test_sessions_in_the_role_of_a_replica_are_captured_too(old: Database) -> None:
    source, schemas = captured(old, "t")
    with started(source, schemas) as reader, old.connect() as replica:
        replica.execute("SET session_replication_role = replica")
        replica.execute("INSERT INTO t VALUES (4, 'x')")
        assert [change.after for change in read_changes(reader, source)] == [("4", "x")]


OVERLAP = """
CREATE FUNCTION only_one() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN
  UPDATE t SET v = 'no' WHERE k <> NEW.k AND v = 'yes'; RETURN NULL;
END $f$
"""


def test_a_trigger_that_changes_a_row_of_its_own_statement_again_stops_by_name(old: Database) -> None:
    """Captured in the wrong order, with images that fit either way: b -> yes -> no would look like no -> yes."""
    old.execute(
        OVERLAP,
        "CREATE TRIGGER one AFTER UPDATE ON t FOR EACH ROW WHEN (NEW.v = 'yes') EXECUTE FUNCTION only_one()",
    )
    source, schemas = captured(old, "t")
    with started(source, schemas) as reader:
        old.execute("UPDATE t SET v = 'yes' WHERE k = 1", "UPDATE t SET v = 'yes' WHERE k = 2")
        found = [(change.before, change.after) for change in read_changes(reader, source)]
        assert found == [
            (("1", "a"), ("1", "yes")),
            (("2", "b"), ("2", "yes")),
            (("1", "yes"), ("1", "no")),
        ], "one row a statement: the order is right"
        old.execute("UPDATE t SET v = 'yes'")
        recorded = old.query(
            'SELECT DISTINCT ON (k) k, v FROM migrator_cdc."public_t_CT" WHERE "__$operation" = 4'
            ' ORDER BY k, "__$seqval" DESC'
        )
        assert recorded != old.query("SELECT k, v FROM t ORDER BY k"), "else there is nothing to find"
        with pytest.raises(SourceError, match="order of two changes of one row"):
            read_changes(reader, source)


def test_a_position_of_another_server_timeline_or_future_is_a_gap(old: Database) -> None:
    source, schemas = captured(old, "t")
    now = Place.parse(ChangeTableCatalog(source).position())
    with started(source, schemas) as reader:
        right = position_of(reader)
    good = Place.parse(right)
    wrong: dict[str, Callable[[], Place]] = {
        "another server": lambda: Place(
            type(now.server)("1", now.server.timeline), now.at, None, good.capture
        ),
        "timeline": lambda: Place(type(now.server)(now.server.system, 77), now.at, None, good.capture),
        "future": lambda: Place(
            now.server, type(now.at)(now.at.xmin, now.at.xmax + 10_000, frozenset()), None, good.capture
        ),
    }
    for name, make in wrong.items():
        with pytest.raises(GapError) as caught, started(source, schemas, make().position()):
            pass
        assert (name if name != "another server" else "is of server 1") in str(caught.value)
    with started(source, schemas, right):
        pass


def test_preflight_names_all_that_is_missing_with_what_mends_it(old: Database) -> None:
    source = source_of(old)
    catalog = ChangeTableCatalog(source)
    assert [(each.check, each.fatal) for each in catalog.preflight(["t"])] == [("change_tables", True)]
    old.execute("CREATE TABLE part (k int PRIMARY KEY) PARTITION BY RANGE (k)", "CREATE TABLE bare (x int)")
    captured(old, "t")
    old.execute(
        f"ALTER TABLE t DISABLE TRIGGER {CAPTURE}",
        'DROP TRIGGER "~migrator_truncate" ON t',
        "ALTER SEQUENCE migrator_cdc.seqval CACHE 10",
        'ALTER TABLE migrator_cdc."public_t_CT" DROP COLUMN v',
    )
    found = {(each.check, each.subject): each.problem for each in catalog.preflight(["t", "part", "bare"])}
    assert set(found) == {
        ("change_table", "public.t"),
        ("change_trigger", "public.t"),
        ("change_sequence", "public.t"),
        ("change_table", "public.part"),
        ("change_table", "public.bare"),
        ("key", "public.bare"),
    }
    problems = [each.problem for each in catalog.preflight(["t"])]
    assert any("'v' is missing" in each for each in problems)
    assert any("isn't enabled" in each for each in problems)
    assert any("'~migrator_truncate' is missing" in each for each in problems)


def test_each_missing_grant_is_named_with_the_statement_that_mends_it(
    postgres: PostgresServer, old: Database
) -> None:
    role = "change_reader"
    postgres.admin.execute(f"CREATE ROLE {role} LOGIN")
    try:
        captured(old, "t", forget_changes=True)  # grants to the owner
        catalog = ChangeTableCatalog(source_of(old, user=role, forget_changes=True))
        seen = []
        while found := [each for each in catalog.preflight(["t"]) if each.fatal]:
            seen.append(found[0].check)
            assert len(seen) < 10, found
            old.execute(found[0].remedy.partition(";")[0])
        assert seen == ["change_grant", "change_grant", "change_grant", "select", "change_grant"]
    finally:
        old.execute(f"DROP OWNED BY {role}")
        postgres.admin.execute(f"DROP ROLE {role}")
