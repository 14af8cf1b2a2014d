"""``migrator reset`` on real servers: what it shows, what it removes, what it keeps, and kills between its steps."""

from __future__ import annotations

import io
import json
import signal
import sys
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from jsonschema import Draft202012Validator
from pyspark.sql import SparkSession

from migrator.adapters.coordination.local.leadership import LocalLeadership
from migrator.config import project as configuration
from migrator.errors import FencedError, HalfResetError, MappingError, RequestError, TargetError
from migrator.wiring import target as wiring_target
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project, shop
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database
from verify.tables.coverage import Coverage, TableCoverage, note_coverage, read_coverage

pytestmark = [pytest.mark.integration, pytest.mark.spark]

SCHEMAS = Path(__file__).parents[3] / "docs" / "schemas"
TABLES = ("label", "order_summary")
"""One row by row, and one joined."""
UNFINISHED = "a reset of this migration began and isn't finished"


@pytest.fixture
def joined(tmp_path: Path, old_pg: Database, new_pg: Database) -> Project:
    shop.create(old_pg, 50)
    return shop.make(tmp_path / "shop", old_pg, new_pg, TABLES)


@pytest.fixture
def joined_on_mysql(tmp_path: Path, old_mysql: Database, new_mysql: Database) -> Project:
    shop.create(old_mysql, 50)
    return watermarked(shop.make(tmp_path / "shop", old_mysql, new_mysql, TABLES))


@pytest.fixture
def from_mariadb(tmp_path: Path, old_maria: Database, new_pg: Database) -> Project:
    create(scenario_database(old_maria), 300)
    return watermarked(run_project.make(tmp_path / "orders", old_maria, new_pg))


def watermarked(project: Project) -> Project:
    text = project.config.read_text().replace("[target]", 'placement = "watermark"\n\n[target]', 1)
    project.config.write_text(text)
    return project


def state_of(project: Project) -> Path:
    return configuration.load(project.config).state


def left(project: Project, tables: tuple[str, ...]) -> dict[str, object]:
    """What is left of the migration, by plain SQL and the folder; empty values are left out."""
    name, old, new = configuration.load(project.config).name, project.old, project.new
    found: dict[str, object] = {"state": sorted(path.name for path in files(state_of(project)))}
    if old.kind == "postgresql":
        slots = "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"
        found |= {"slot": old.query(slots), "publication": old.query("SELECT pubname FROM pg_publication")}
    else:
        found["watermark"] = old.query("SELECT * FROM migrator.watermark WHERE migration = %s", [name])
    postgres = new.kind == "postgresql"
    mirror = "migrator_mirror" if postgres else f"{new.database}_mirror"
    found["ledger"] = new.query(f"SELECT * FROM {'migrator.ledger' if postgres else 'migrator_ledger'}")
    found["mirror"] = new.query(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = %s"
        " AND table_name NOT IN ('filled', 'filling', 'moved')",
        [mirror],
    )
    if new.query("SELECT 1 FROM information_schema.tables WHERE table_schema = %s", [mirror]):
        found |= {kept: new.query(f"SELECT * FROM {mirror}.{kept}") for kept in ("filled", "filling")}
    if postgres:
        stages = "SELECT tablename FROM pg_tables WHERE schemaname = 'migrator' AND tablename LIKE 'stage%%'"
        found["staging"] = new.query(stages, [])
    found |= {table: new.query(f"SELECT * FROM {table}") for table in tables}
    return {what: value for what, value in found.items() if value}


def files(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.exists() else []


@pytest.mark.slow
def test_a_reset_leaves_nothing_and_the_next_run_begins_anew(
    joined: Project, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    joined.new.execute("CREATE TABLE ours (id int PRIMARY KEY)", "INSERT INTO ours VALUES (1)")
    joined.run_here()
    settings = configuration.load(joined.config)
    wiring_target.target_key_maps(settings).numbers("person", ["a", "b"])
    joined.new.execute("CREATE SCHEMA IF NOT EXISTS other")
    before = left(joined, TABLES)
    assert {"slot", "publication", "ledger", "mirror", "filled", "state", *TABLES} <= before.keys()
    capfd.readouterr()
    assert joined.command("reset", "--yes", "--reason", "rehearsal") == 0
    shown = capfd.readouterr().out
    for said in ("replication slot migrator_", "publication migrator_", "rows of public.order_summary", "the mirror",
                 "the ledger's row (segment", "event log", "person (2 numbers); --key-maps"):  # fmt: skip
        assert said in shown, said
    assert left(joined, TABLES) == {}
    assert joined.new.query("SELECT * FROM ours") == [(1,)]
    assert len(joined.new.query("SELECT * FROM migrator.key_map")) == 2
    assert joined.command("reset", "--yes") == 0
    assert "nothing to remove" in capfd.readouterr().out
    assert joined.command("check") == 0
    joined.run_here()
    assert shop.differences(joined, TABLES) == {}
    assert joined.command("reset", "--yes", "--key-maps") == 0
    assert joined.new.query("SELECT * FROM migrator.key_map") == []
    assert joined.new.query("SELECT * FROM migrator.key_map_counter") == []
    acts = [row[0] for row in joined.new.query("SELECT act FROM migrator.history ORDER BY id")]
    assert acts.count("reset") == 4, "two resets, each with its beginning and its end"


def test_between_two_servers_of_mysql(
    joined_on_mysql: Project, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    project = joined_on_mysql
    project.run_here()
    assert {"watermark", "ledger", "mirror", "filled", "state", *TABLES} <= left(project, TABLES).keys()
    assert project.command("reset", "--yes") == 0
    assert left(project, TABLES) == {}
    assert project.command("reset", "--yes") == 0
    assert "nothing to remove" in capfd.readouterr().out
    project.run_here()
    assert shop.differences(project, TABLES) == {}


def test_from_mariadb(from_mariadb: Project, spark: SparkSession) -> None:
    from_mariadb.run_here()
    assert {"watermark", "ledger", "state", "purchase"} <= left(from_mariadb, ("purchase",)).keys()
    assert from_mariadb.command("reset", "--yes") == 0
    assert left(from_mariadb, ("purchase",)) == {}
    from_mariadb.run_here()
    assert from_mariadb.differences() == []


@pytest.mark.slow
def test_killed_between_any_two_steps_no_run_goes_on_and_a_reset_finishes(
    joined: Project, spark: SparkSession
) -> None:
    joined.run_here()
    kept = joined.process("reset", "--yes", crash_at="reset.noted")
    assert killed(kept)
    full = left(joined, TABLES)
    assert {"slot", "publication", "ledger", "mirror", "filled", *TABLES} <= full.keys()
    refused(joined)
    assert killed(joined.process("reset", "--yes", crash_at="reset.marked"))
    refused(joined)
    steps = 0
    while killed(joined.process("reset", "--yes", crash_at="reset.removed")):
        steps += 1
        if (state_of(joined) / "reset.json").exists():
            refused(joined)
        assert steps < 20
    assert steps >= 6
    assert left(joined, TABLES) == {}
    joined.run_here()
    assert shop.differences(joined, TABLES) == {}


def killed(process: object) -> bool:
    """Waits for a process; whether it was killed at its point, and didn't come to its end."""
    output, _ = process.communicate(timeout=120)  # type: ignore[attr-defined]
    code = process.returncode  # type: ignore[attr-defined]
    assert code in (0, -signal.SIGKILL), output
    return bool(code)


def refused(project: Project) -> None:
    with pytest.raises(HalfResetError, match=UNFINISHED):
        project.run_here()


@pytest.mark.slow
def test_the_ledger_alone_refuses_processes_of_other_machines(joined: Project, spark: SparkSession) -> None:
    joined.run_here()
    assert killed(joined.process("reset", "--yes", crash_at="reset.marked"))
    (state_of(joined) / "reset.json").unlink()
    refused(joined)
    for command in ("verify", "check", "status"):
        with pytest.raises(HalfResetError, match=UNFINISHED):
            joined.command(command)
    assert joined.command("reset", "--yes") == 0
    assert left(joined, TABLES) == {}


def test_refused_while_a_run_leads_and_nothing_is_removed(joined: Project, spark: SparkSession) -> None:
    joined.run_here()
    before = left(joined, TABLES)
    leader = LocalLeadership(state_of(joined))
    leader.acquire(100)
    with pytest.raises(FencedError, match="the migration runs"):
        joined.command("reset", "--yes")
    leader.release()
    assert left(joined, TABLES) == before


def test_rows_of_others_that_point_at_ours_refuse_and_the_remedy_works(
    joined: Project, spark: SparkSession
) -> None:
    joined.run_here()
    joined.new.execute(
        "CREATE TABLE remark (id int PRIMARY KEY, label int REFERENCES label)",
        "INSERT INTO remark SELECT 1, min(category_id) FROM label",
    )
    before = left(joined, TABLES)
    with pytest.raises(TargetError, match="rows of another table point at") as caught:
        joined.command("reset", "--yes")
    assert left(joined, TABLES) == before
    joined.new.execute(caught.value.remedy.partition("(")[2].partition(")")[0])
    assert joined.command("reset", "--yes") == 0, (
        "a table that points at ours without any row is no hindrance"
    )
    assert left(joined, TABLES) == {}


class Terminal(io.StringIO):
    """A person who types."""

    def isatty(self) -> bool:
        return True


def test_nothing_is_removed_unless_somebody_said_so(
    joined: Project, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    joined.run_here()
    before = left(joined, TABLES)
    with pytest.raises(RequestError, match="nobody can be asked"):
        joined.command("reset")
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert joined.command("reset") == 1
    assert "nothing was removed" in capfd.readouterr().out
    assert left(joined, TABLES) == before
    monkeypatch.setattr(sys, "stdin", Terminal("y\n"))
    assert joined.command("reset") == 0
    assert left(joined, TABLES) == {}


def test_rows_that_nothing_shows_to_be_the_migrations_stay(
    joined: Project, capfd: pytest.CaptureFixture[str]
) -> None:
    joined.new.execute("INSERT INTO label VALUES (1, 'of the application')")
    assert joined.command("reset", "--yes") == 0
    shown = capfd.readouterr().out
    assert "nothing to remove" in shown
    assert "1 row of public.label: nothing shows" in shown
    assert len(joined.new.query("SELECT * FROM label")) == 1
    assert not state_of(joined).exists()


@pytest.mark.slow
def test_one_table_anew_and_all_others_go_on(
    joined: Project, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    joined.run_here()
    joined.new.execute("UPDATE label SET name = 'wrong'", "INSERT INTO label VALUES (4711, 'extra')")
    joined.old.execute("UPDATE category SET name = 'later' WHERE category_id = 2")
    reports = configuration.load(joined.config).reports()
    wrong = [TableCoverage(name, "different", 1) for name in ("label", "order_summary")]
    note_coverage(wrong, "", reports)
    assert joined.command("reset", "--table", "label", "--yes") == 0
    shown = capfd.readouterr().out
    assert read_coverage(reports) == Coverage(tuple(wrong[1:]), "", ANY), "rows that are gone have no verdict"
    assert "8 rows of public.label" in shown
    assert "dumps    public.category again" in shown
    assert joined.new.query("SELECT * FROM label") == []
    assert joined.new.query("SELECT * FROM order_summary") != []
    assert joined.command("reset", "--table", "label", "--yes") == 0
    assert "nothing to remove" in capfd.readouterr().out, "what was asked for isn't asked for again"
    joined.run_here()
    assert shop.differences(joined, TABLES) == {}
    joined.new.execute(
        "UPDATE order_summary SET customer_name = 'wrong'", "DELETE FROM order_summary WHERE order_id = 3"
    )
    assert joined.command("reset", "--table", "order_summary", "--yes") == 0
    assert read_coverage(reports) == Coverage((), "", ANY)
    joined.old.execute(
        "UPDATE customer SET name = 'somebody' WHERE customer_id = 2"
    )  # it goes with the next batch
    joined.run_here()
    assert shop.differences(joined, TABLES) == {}


@pytest.mark.slow
def test_killed_while_one_table_starts_anew_a_run_refuses_while_rows_are_there_and_ends_it_once_they_went(
    joined: Project, spark: SparkSession
) -> None:
    joined.run_here()
    assert killed(joined.process("reset", "--table", "label", "--yes", crash_at="reset.marked"))
    with pytest.raises(MappingError, match="was added to the mapping, or put back"):
        joined.run_here()
    assert killed(joined.process("reset", "--table", "label", "--yes", crash_at="reset.removed"))
    joined.run_here()
    assert shop.differences(joined, TABLES) == {}


def test_one_table_anew_on_mysql(joined_on_mysql: Project, spark: SparkSession) -> None:
    joined_on_mysql.run_here()
    joined_on_mysql.new.execute("INSERT INTO label VALUES (4711, 'extra')")
    assert joined_on_mysql.command("reset", "--table", "label", "--yes") == 0
    joined_on_mysql.run_here()
    assert shop.differences(joined_on_mysql, TABLES) == {}


def test_a_table_that_the_mapping_does_not_make_is_refused(joined: Project) -> None:
    with pytest.raises(MappingError, match="makes no target table 'category'"):
        joined.command("reset", "--table", "category", "--yes")


def test_commands_that_change_something_say_it_as_json_by_their_schemas(
    joined: Project, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    joined.run_here()

    def spoken(schema: str, *arguments: str, code: int = 0) -> dict[str, Any]:
        capfd.readouterr()
        assert joined.command(*arguments, "--json") == code
        found: dict[str, Any] = json.loads(capfd.readouterr().out)
        text = (SCHEMAS / f"{schema}.schema.json").read_text("utf-8")
        assert list(Draft202012Validator(json.loads(text)).iter_errors(found)) == []
        return found

    assert spoken("dump-request", "dump", "start", "--table", "product")["request"]["id"] == "r1"
    assert spoken("dump-request", "dump", "pause", "r1")["request"]["state"] == "paused"
    assert spoken("dump-request", "dump", "cancel", "r1")["request"]["state"] == "cancelled"
    assert spoken("dump-pace", "dump", "pace", "--chunk-rows", "70")["pace"]["chunk_rows"] == 70
    assert spoken("remap", "remap", "order_summary")["outcome"] == "derived anew"
    before = left(joined, TABLES)
    one = spoken("reset", "reset", "--table", "label", code=1)
    assert (one["outcome"], one["request"], left(joined, TABLES)) == ("shown", "", before)
    (place,) = one["places"]
    assert [(thing["kind"], "rows of public.label" in thing["text"]) for thing in place["removes"]] == [
        ("rows", True)
    ]
    assert spoken("reset", "reset", "--table", "label", "--yes")["request"] == "r2"
    assert joined.new.query("SELECT count(*) FROM label") == [(0,)]
    shown = spoken("reset", "reset", code=1)
    assert {"slot", "publication", "ledger"} <= {
        thing["kind"] for place in shown["places"] for thing in place["removes"]
    }
    assert left(joined, TABLES), "shown is not done"
    done = spoken("reset", "reset", "--yes")
    assert (done["outcome"], done["places"], left(joined, TABLES)) == ("done", shown["places"], {})
    assert spoken("reset", "reset", "--yes")["outcome"] == "nothing to remove"
