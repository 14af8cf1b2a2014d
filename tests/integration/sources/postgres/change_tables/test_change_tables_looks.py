"""What triggers don't see of a captured table is looked for beside the change tables, with every poll."""

from __future__ import annotations

import pytest

from migrator.adapters.sources.postgres.change_tables import capture_facts
from migrator.adapters.sources.postgres.change_tables.catalog import ChangeTableCatalog
from migrator.adapters.sources.postgres.change_tables.place import Place
from migrator.adapters.sources.postgres.log.unlogged_changes import UnloggedChanges
from migrator.errors import GapError, MigratorError, SchemaError
from migrator.model.limits import CaptureLimits
from migrator.model.requests.request import WHOLE
from migrator.model.table import TableId
from tests.fix_change_tables import captured as made
from tests.fix_change_tables import read_all, read_changes, source_of, started
from tests.integration.capturing import Capturing, capturing
from tests.integration.sources.postgres.tables.test_postgres_identity import ended
from tests.servers import Database

pytestmark = pytest.mark.integration

T = TableId("public", "t")
BACK = "ALTER TYPE mood RENAME VALUE 'good' TO 'x'; ALTER TYPE mood RENAME VALUE 'x' TO 'good'"
VALUES = {
    "ALTER TABLE t DROP COLUMN v, ADD COLUMN v int": "column 'v' was dropped and added again",
    "ALTER TABLE t ALTER COLUMN v TYPE int USING v + 1": "column 'v' was altered",
    "ALTER TYPE pair ADD ATTRIBUTE c int": "the attributes of type public.pair were changed",
    "ALTER TYPE mood RENAME VALUE 'good' TO 'fine'": "'good' of public.mood was renamed to 'fine'",
    BACK: "'good' of public.mood was renamed",
}
CHANGES = 'migrator_cdc."public_t_CT"'
NONE = "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL;END'"
OTHER = "EXECUTE FUNCTION migrator_cdc.public_t_fn()"
CAPTURE = {
    "ALTER TABLE t DISABLE TRIGGER ALL": "isn't enabled for all sessions",
    'ALTER TABLE t DISABLE TRIGGER ALL; ALTER TABLE t ENABLE ALWAYS TRIGGER "!migrator_capture";'
    ' ALTER TABLE t ENABLE ALWAYS TRIGGER "~migrator_command";'
    ' ALTER TABLE t ENABLE ALWAYS TRIGGER "~migrator_truncate"': "was changed or replaced",
    'ALTER TABLE t ENABLE TRIGGER "!migrator_capture"': "isn't enabled for all sessions",
    'DROP TRIGGER "~migrator_truncate" ON t': "is missing",
    f"CREATE TRIGGER mine AFTER INSERT ON u FOR EACH ROW {OTHER}": "of public.u writes into its change table",
    "ALTER TABLE w ATTACH PARTITION t FOR VALUES FROM (0) TO (1000)": "it is a part of public.w",
    "CREATE TABLE up (k int NOT NULL); ALTER TABLE t INHERIT up": "it is a part of public.up",
    'CREATE RULE none AS ON INSERT TO migrator_cdc."public_t_CT" DO INSTEAD NOTHING': "has the rule 'none'",
    'ALTER TABLE migrator_cdc."public_t_CT" SET UNLOGGED': "isn't logged",
    f"{NONE}; CREATE TRIGGER drops BEFORE INSERT ON {CHANGES} FOR EACH ROW EXECUTE FUNCTION nothing()": (
        "has the trigger 'drops'"
    ),
}
LATER = "INSERT INTO t (k, v) VALUES (50, 50)"


@pytest.fixture
def tables(old_pg: Database) -> Database:
    old_pg.execute(
        "CREATE TYPE pair AS (a int, b int)",
        "CREATE TYPE mood AS ENUM ('good', 'bad')",
        "CREATE TABLE t (k int PRIMARY KEY, p pair[], m mood, v int)",
        "INSERT INTO t SELECT g, ARRAY[ROW(1, 2)::pair], 'good', g FROM generate_series(1, 3) g",
        "CREATE TABLE u (k int PRIMARY KEY, p pair[], m mood, v int)",
        "CREATE TABLE w (k int NOT NULL, p pair[], m mood, v int) PARTITION BY RANGE (k)",
    )
    return old_pg


@pytest.fixture
def captured(tables: Database) -> Capturing:
    """Three rows, dumped."""
    capture = capturing(tables, ["t"], CaptureLimits(linger_s=0.01), change_tables=True)
    capture.run(capture.dumped)
    return capture


@pytest.mark.each_value
@pytest.mark.parametrize("running", [True, False], ids=["while it runs", "stopped"])
@pytest.mark.parametrize("change", VALUES)
def test_values_that_no_trigger_sees_stop_until_rows_are_asked_for(
    tables: Database, captured: Capturing, change: str, running: bool
) -> None:
    with pytest.raises(SchemaError) as caught:
        ended(captured, lambda: tables.execute(*change.split("; ")), running)
    assert VALUES[change] in caught.value.cause
    assert "migrator dump start --table t" in caught.value.remedy
    tables.execute(LATER)
    captured.requests.update(lambda book: book.start((T,), WHOLE))
    captured.run(lambda: any(dump.done for dump in captured.progress.snapshot().requests))
    captured.run(captured.caught_up())
    assert captured.held()[T] == captured.source(T)


def test_without_the_look_values_are_those_of_before(
    tables: Database, captured: Capturing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control of the one above."""
    monkeypatch.setattr(UnloggedChanges, "look_at_values", lambda *_: None)
    for change in list(VALUES)[:4]:
        tables.execute(*change.split("; "))
    tables.execute(LATER)
    captured.run(captured.caught_up())
    held, now = captured.held()[T], captured.source(T)
    assert held.keys() == now.keys()
    assert held != now


@pytest.mark.parametrize("change", CAPTURE)
def test_what_disturbs_capture_stops_by_name_before_anything_is_delivered(
    tables: Database, captured: Capturing, change: str
) -> None:
    for statement in change.split("; "):
        tables.execute(statement)
    before = captured.held()[T]
    with pytest.raises(GapError) as caught:
        captured.run(captured.caught_up())
    assert CAPTURE[change] in caught.value.cause
    assert captured.held()[T] == before
    if "is missing" not in CAPTURE[change] and "changed or replaced" not in CAPTURE[change]:
        problems = [each.problem for each in ChangeTableCatalog(source_of(tables)).preflight(["t"])]
        assert any(CAPTURE[change] in each for each in problems), "check says it too"


def test_a_table_that_inherits_from_a_captured_one_stops_by_name(
    tables: Database, captured: Capturing
) -> None:
    tables.execute("CREATE TABLE kid () INHERITS (t)", "INSERT INTO kid (k, v) VALUES (4, 4)")
    with pytest.raises(SchemaError, match="inherits from it") as caught:
        captured.run(captured.caught_up())
    tables.execute(caught.value.remedy.partition(";")[0])
    captured.run(captured.caught_up())
    assert captured.held()[T] == captured.source(T)


def test_what_is_done_after_the_last_poll_is_found_at_the_end(tables: Database) -> None:
    source, schemas = made(tables, "t")
    with started(source, schemas) as reader:
        read_all(reader, source)
        reader.finish()
        tables.execute("ALTER TYPE mood RENAME VALUE 'good' TO 'fine'")
        with pytest.raises(SchemaError, match="renamed"):
            reader.finish()


NO_MORE = """
CREATE FUNCTION only_one() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN
  UPDATE t SET v = 0 WHERE k <> NEW.k AND v = 9; RETURN NULL;
END $f$
"""


def test_through_a_parent_the_order_of_changes_would_be_wrong_without_a_word(
    tables: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why a captured table must not be a part of another: its statement triggers don't fire for that one's."""
    source, schemas = made(tables, "t")
    monkeypatch.setattr(
        "migrator.adapters.sources.postgres.change_tables.log_reader.undisturbed", lambda *_: {}
    )
    tables.execute(
        NO_MORE,
        "ALTER TABLE w ATTACH PARTITION t FOR VALUES FROM (0) TO (1000)",
        "CREATE TRIGGER one AFTER UPDATE ON t FOR EACH ROW WHEN (NEW.v = 9) EXECUTE FUNCTION only_one()",
    )
    with started(source, schemas) as reader:
        tables.execute("UPDATE w SET v = 9 WHERE k <= 2")
        last = {change.after[0]: change.after[3] for change in read_changes(reader, source) if change.after}
    now = {str(k): str(v) for k, v in tables.query("SELECT k, v FROM t WHERE k <= 2")}
    assert last != now


def test_the_script_run_again_disturbs_nothing(tables: Database, captured: Capturing) -> None:
    """It makes what is missing, and leaves alone what is as it must be, so that no trigger was off for a moment."""
    script = ChangeTableCatalog(source_of(tables)).script(["t", "u"])
    assert "public_u_fn" in script
    with tables.connect() as owner:
        owner.execute(script)
    tables.execute(LATER)
    captured.run(captured.caught_up())
    assert captured.held()[T] == captured.source(T)


def test_a_position_of_an_earlier_version_is_gone_on_from(tables: Database) -> None:
    """Its digest has the numbers of the table's columns."""
    source, schemas = made(tables, "t")
    digests = capture_facts.digests
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(capture_facts, "digests", lambda *given, **_: digests(*given, with_numbers=True))
        with started(source, schemas) as reader:
            place = reader._place
            assert place is not None
            old = place.position()
    with started(source, schemas, old) as reader:
        tables.execute(LATER)
        assert len(read_changes(reader, source)) == 1
        assert reader._place is not None
        assert reader._place.capture != Place.parse(old).capture
    tables.execute("ALTER TABLE t ALTER COLUMN v SET NOT NULL", 'DROP TRIGGER "!migrator_capture" ON t')
    with pytest.raises(MigratorError, match="may have gone by"), started(source, schemas, old) as reader:
        read_changes(reader, source)
