"""What `migrator grants` prints is enough for a whole migration, and nothing of it can be left out.

Each test makes a login by exactly the printed statements. The control takes each right away again, one by one: then
something fails by name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from migrator import schema as control
from migrator.config import project as configuration
from migrator.errors import MigratorError, TargetError
from migrator.model.event import MarkKind
from migrator.run.migration import preflight
from migrator.wiring import parts as wiring
from migrator.wiring.source import source_database, source_parts
from migrator.wiring.target import known_epoch
from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.commands.poor_logins import Poor, by_scripts
from tests.integration.run_project import Project, scenario_database

pytestmark = [pytest.mark.integration, pytest.mark.spark]
PAIRS = {
    "postgresql to postgresql": ("old_pg", "new_pg"),
    "mariadb to mysql": ("old_maria", "new_mysql"),
    "mysql to mariadb": ("old_mysql", "new_maria"),
}
QUERIES = """
format: 1
queries:
  - name: a purchase
    old: SELECT id, customer, items FROM orders WHERE id = :id
    new: SELECT purchase_id, customer_id, item_count FROM purchase WHERE purchase_id = :id
    parameters:
      id: {from: 1, to: 9}
"""
# Tied to the mapping's table by foreign keys, and filled by no mapping: what it points at, and what points at it.
TIED = (
    "CREATE TABLE size (items int PRIMARY KEY)",
    f"INSERT INTO size VALUES {', '.join(f'({n})' for n in range(20))}",
    "ALTER TABLE purchase ADD CONSTRAINT of_size FOREIGN KEY (item_count) REFERENCES size (items)",
    "CREATE TABLE remark (purchase bigint, CONSTRAINT of_purchase FOREIGN KEY (purchase)"
    " REFERENCES purchase (purchase_id))",
)
_GRANT = re.compile(r"GRANT (?P<rights>.+?) ON (?P<place>.+) TO (?P<who>\S+)")


@pytest.fixture(params=PAIRS)
def poor(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Poor]:
    """Both logins of a pair of servers, which PUBLIC's rights don't help."""
    old, new = (request.getfixturevalue(name) for name in PAIRS[request.param])
    create(scenario_database(old), 200)
    monkeypatch.setenv("POOR", "poor")
    settings = _configured(run_project.make(tmp_path / "project", old, new))
    new.execute(*TIED)
    with by_scripts((old, new), wiring.grants(settings)) as needed:
        yield Poor(Project(old, new, settings.file), needed)
    if settings.placement == "watermark":
        old.execute("DROP DATABASE migrator")


def _configured(project: Project) -> configuration.Settings:
    """The project with logins of its own, and on MySQL with the watermark that an administrator has made."""
    old, new = project.old, project.new
    text = project.config.read_text()
    for database in (old, new):
        login = f'user = "poor_{database.database[-8:]}"\npassword_env = "POOR"'
        place = f'database = "{database.database}"\n'
        text = text.replace(f'{place}user = "{database.user}"', f"{place}{login}")
    if old.kind == "mysql":
        text = text.replace("\n\n[target]", '\nplacement = "watermark"\n\n[target]')
    project.config.write_text(text)
    settings = configuration.load(project.config)
    if settings.placement == "watermark":
        owner = replace(settings.source, user=old.user, password=old.password)
        control.upgrade_source(source_database(replace(settings, source=owner)))
    return settings


def single_rights(statement: str, owner: str) -> list[tuple[str, str]]:
    """Per right of a statement: what takes it away, and what gives it back."""
    if statement.startswith("DO "):
        return _found_by(statement)
    grant = _GRANT.fullmatch(statement)
    if grant is not None:
        place, who = grant["place"], grant["who"]
        return [
            (f"REVOKE {right} ON {place} FROM {who}", f"GRANT {right} ON {place} TO {who}")
            for right in grant["rights"].split(", ")
        ]
    if statement.endswith(" REPLICATION"):
        return [(statement.replace(" REPLICATION", " NOREPLICATION"), statement)]
    if statement.endswith(" REPLICA IDENTITY FULL"):
        return [(statement.replace("FULL", "DEFAULT"), statement)]
    if statement.startswith("CREATE PUBLICATION"):
        return [(f"DROP PUBLICATION {statement.split()[2]}", statement)]
    name = statement.split()[2]
    owned = f"ALTER SCHEMA {name} OWNER TO"
    return [(f'{owned} "{owner}"', f"{owned} {statement.split()[-1]}")]


def _found_by(block: str) -> list[tuple[str, str]]:
    """What a block that looks for foreign keys gives: each can be taken away; not so the right to vacuum."""
    role = re.findall(r"'(poor_\w+)'", block)[0]
    if "session_replication_role" in block:
        return [(f"REVOKE SET ON PARAMETER session_replication_role FROM {role}", block)]
    tied = [] if "MAINTAIN" in block else ["size", "remark"]
    return [(f"REVOKE SELECT ON {table} FROM {role}", block) for table in tied]


def problems(poor: Poor) -> str:
    """What check, or the first step of a run that check doesn't try, says; empty when nothing."""
    settings = configuration.load(poor.project.config)
    try:
        found = [str(finding) for finding in preflight(wiring.parts(settings)) if finding.fatal]
        if problem := wiring.revision_problem(settings):
            found.append(problem)
        if not found:
            _steps(settings)
    except MigratorError as error:
        return str(error)
    return "; ".join(found)


def _steps(settings: configuration.Settings) -> None:
    """What a run begins with: control tables, ledger, log reader, watermark."""
    parts = wiring.parts(settings)
    assert parts.prepare() is None
    parts.target.open(known_epoch(settings) + 1)
    parts.target.close()
    if settings.placement == "watermark":
        _, make = source_parts(settings)
        marks = make([]).watermarks
        assert marks is not None
        writer = marks()
        writer.write("a token", MarkKind.LOW)
        writer.write("another", MarkKind.HIGH)
        writer.close()


def dual_read(project: Project) -> None:
    """With the run's own logins and ledger: equal answers, then one planted wrong row."""
    file = project.config.parent / "queries.yaml"
    file.write_text(QUERIES)
    assert project.command("dual-read", "run", str(file)) == 0
    project.new.execute("UPDATE purchase SET item_count = item_count + 1 WHERE purchase_id = 5")
    assert project.command("dual-read", "run", str(file), "--wait", "10") == 1
    project.new.execute("UPDATE purchase SET item_count = item_count - 1 WHERE purchase_id = 5")


@pytest.mark.slow
def test_the_printed_rights_are_enough_and_none_is_superfluous(poor: Poor, spark: SparkSession) -> None:
    project = poor.project
    assert problems(poor) == ""
    project.run_here()
    project.old.execute("UPDATE orders SET comment = 'new' WHERE id = 3", "DELETE FROM orders WHERE id = 4")
    project.run_here()
    assert project.differences() == []
    assert project.command("verify") == 0
    dual_read(project)
    for database, statement in poor.needed:
        for take, give in single_rights(statement, database.user):
            if database.kind != "postgresql" and "remark" in take:
                continue  # without it they hide the foreign key itself ("Still trusted" in invariants.md)
            if re.search(
                "migrator_(ledger|history|version)", take
            ):  # rights on a ledger that the first run makes
                database.execute(
                    "DROP TABLE IF EXISTS migrator_ledger, migrator_history, migrator_version",
                    "DELETE FROM purchase",
                )
            database.execute(take)
            told = problems(poor)
            # MySQL and MariaDB take a right on a table that isn't there only beside CREATE.
            database.execute(give if database.kind == "postgresql" else statement)
            assert told, f"nobody misses it: {take}"
    assert problems(poor) == "", "not all was given back, so it wasn't the missing rights alone"


@pytest.mark.slow
def test_a_reset_needs_little_more_and_says_what(
    poor: Poor, spark: SparkSession, capfd: pytest.CaptureFixture[str]
) -> None:
    project = poor.project
    project.run_here()
    before = project.new.query("SELECT * FROM purchase")
    if project.new.kind != "postgresql":
        with pytest.raises(TargetError, match="may not remove its rows") as caught:
            project.command("reset", "--yes")
        assert project.new.query("SELECT * FROM purchase") == before, "told before anything was removed"
        project.new.execute(caught.value.remedy.partition(": ")[2].partition(";")[0])
    assert project.command("reset", "--yes") == 0
    kept = capfd.readouterr().out
    assert project.new.query("SELECT * FROM purchase") == []
    if project.old.kind == "postgresql":
        assert f"which is {project.old.user}'s: DROP PUBLICATION" in kept, "an administrator made it"
        assert (
            project.old.query("SELECT * FROM pg_replication_slots WHERE database = current_database()") == []
        )
    if project.old.kind == "mysql":
        assert "the watermark row: DELETE FROM migrator.watermark" in kept
    assert project.command("reset", "--yes") == 0
    assert "nothing to remove" in capfd.readouterr().out
    project.run_here()
    assert project.differences() == []
