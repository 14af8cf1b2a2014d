"""``migrator init`` over two real schemas: what it matches, what it leaves open, and that the project runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from pyspark.sql import SparkSession

from migrator.cli import cli
from migrator.config import project as configuration
from migrator.errors import MigratorError
from migrator.wiring import parts as wiring
from tests.integration.run_project import Project
from tests.servers import Database

pytestmark = [pytest.mark.integration]

OLD = {
    "mariadb": """CREATE TABLE customer (id int PRIMARY KEY, name varchar(40) NOT NULL, active tinyint(1) NOT NULL,
        born date, seen datetime(6), changed timestamp(6) NOT NULL DEFAULT current_timestamp(6), credit
        decimal(10,2), meeting datetime)""",
    "postgresql": """CREATE TABLE customer (id int PRIMARY KEY, name varchar(40) NOT NULL, active smallint NOT NULL,
        born date, seen timestamp, changed timestamptz, credit numeric(10,2), meeting timestamp)""",
}
OLD["mysql"] = OLD["mariadb"]
NEW = {
    "postgresql": """CREATE TABLE customer (id bigint PRIMARY KEY, name text NOT NULL, active boolean NOT NULL,
        born date, seen timestamp, changed timestamptz NOT NULL, credit numeric(12,2), meeting timestamptz,
        motto text, made_at timestamptz NOT NULL DEFAULT now(),
        size int GENERATED ALWAYS AS (length(name)) STORED)""",
    "mysql": """CREATE TABLE customer (id bigint PRIMARY KEY, name varchar(80) NOT NULL, active tinyint(1) NOT NULL,
        born date, seen datetime(6), changed timestamp(6) NOT NULL, credit decimal(12,2), meeting timestamp NULL,
        motto text, made_at datetime NOT NULL DEFAULT now(), size int AS (length(name)) STORED)""",
}
NEW["mariadb"] = NEW["mysql"]


def url(database: Database) -> str:
    return f"{database.kind}://{database.user}@{database.host}:{database.port}/{database.database}"


def begun(folder: Path, old: Database, new: Database) -> Path:
    """Two schemas, and the project that init makes of them."""
    old.execute(
        OLD[old.kind],
        "CREATE TABLE bill (bill_id int PRIMARY KEY, totals int, paid int)",
        "CREATE TABLE old_log (at int PRIMARY KEY, what int)",
    )
    new.execute(NEW[new.kind], "CREATE TABLE invoice (id int PRIMARY KEY, total int, paid int)")
    arguments = ["init", str(folder), "--source-url", url(old), "--target-url", url(new)]
    done = CliRunner().invoke(cli, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "customer: gaps: meeting, motto" in done.output
    assert "invoice: gap: no old table has its name; from bill?" in done.output
    return folder


@pytest.mark.parametrize(
    ("old", "new"), [("old_pg", "old_maria"), ("old_mysql", "new_pg"), ("old_maria", "old_mysql")]
)
def test_same_names_are_matched_with_conversions_and_the_rest_are_gaps(
    tmp_path: Path, request: pytest.FixtureRequest, old: str, new: str
) -> None:
    source: Database = request.getfixturevalue(old)
    text = (begun(tmp_path / "shop", source, request.getfixturevalue(new)) / "mapping.py").read_text()
    assert 'flag("active").alias("active")' in text
    assert 'gap("customer", "motto", "customer has no column of that name' in text
    assert 'gap("customer", "meeting", "meeting: ' in text
    assert 'mapping.gap("invoice", "no old table has its name; from bill?")' in text
    assert 'gap("invoice", "id", "bill has no column of that name; int' in text
    assert " <- bill_id int" in text
    assert " <- totals int" in text
    assert '        F.col("paid"),  # int' in text
    assert "# made_at is left to the target's default" in text
    assert '# Old tables that nothing reads: old_log\n\n# @mapping.target("old_log", key="at")' in text
    if source.kind == "postgresql":
        assert 'F.col("born")' in text
        assert 'F.col("changed")' in text
    else:
        assert 'mysql_date("born").alias("born")' in text
        assert 'mysql_datetime("seen").alias("seen")' in text
        assert 'instant(mysql_datetime("changed"), "UTC").alias("changed")' in text
    configuration.load(tmp_path / "shop" / "migration.toml")


def project_tests(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=folder, env=dict(os.environ), capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.spark
def test_the_project_names_its_gaps_and_runs_without_them(
    tmp_path: Path,
    old_maria: Database,
    new_pg: Database,
    spark: SparkSession,
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = begun(tmp_path / "shop", old_maria, new_pg)
    old_maria.execute(
        "INSERT INTO customer (id, name, active, born, seen, credit) VALUES"
        " (1, 'Ada', 1, '1815-12-10', '2024-02-29 12:30:00.25', 10.5), (2, 'Zoe', 0, NULL, NULL, NULL)",
        "INSERT INTO bill VALUES (1, 20, 3)",
    )
    config = folder / "migration.toml"
    config.write_text(config.read_text() + '\n[spark]\nmaster = "local[2]"\n')
    project = Project(old_maria, new_pg, config)
    wiring.upgrade_user_target(configuration.load(config))

    assert project.command("explain") == 2
    said = capfd.readouterr().out
    assert "column 'meeting' is a gap, not mapped yet" in said
    assert "column 'motto' is a gap, not mapped yet" in said
    assert "invoice is a gap, not mapped yet" in said
    assert project.command("check") == 2
    said = capfd.readouterr().out
    assert "gap: invoice" in said
    assert "(1) column 'id' is a gap, not mapped yet; (2)" not in said
    assert "column 'id' is a gap, not mapped yet" in said
    assert "target table 'customer' can't be mapped" in said
    with pytest.raises(MigratorError, match="invoice: not mapped yet: no old table has its name"):
        project.run_here()
    done = project_tests(folder)
    assert done.returncode == 1, done.stdout
    assert "gap: customer.meeting is not mapped yet" in done.stdout

    mapping = folder / "mapping.py"
    text = re.sub(r"^ *(mapping\.)?gap\(.*\n", "", mapping.read_text(), flags=re.MULTILINE)
    columns = [("bill_id", "id"), ("totals", "total")]
    finished = "".join(f'        F.col("{old}").alias("{new}"),\n' for old, new in columns)
    finished = text.replace("    return bill.select(\n", f"    return bill.select(\n{finished}")
    # Finished, and not yet said to be right: refused until the line goes, as the remedy says.
    mapping.write_text(f'{finished}\n\nmapping.gap("invoice", "from bill?")\n')
    assert project.command("explain") == 2
    assert "invoice is a gap, not mapped yet" in capfd.readouterr().out
    with pytest.raises(MigratorError, match=r"then delete its line mapping\.gap"):
        project.run_here()
    mapping.write_text(finished)
    assert project.command("explain") == 0
    done = project_tests(folder)
    assert done.returncode == 0, done.stdout
    project.run_here()
    assert new_pg.query("SELECT id, total, paid FROM invoice") == [(1, 20, 3)]
    rows = new_pg.query("SELECT id, name, active, born::text, seen::text FROM customer ORDER BY id")
    assert len(rows) == 2
    assert rows[0] == (
        1, "Ada", True, "1815-12-10", "2024-02-29 12:30:00.25",
    )  # fmt: skip
    assert project.command("verify", "--wait", "20") == 0


ODD_COLUMNS = [
    "a.b",
    "*",
    "x`y",
    "a b",
    'qu"ote',
    "new\nline",
    "ﬁ",
    "class",
    "1st",
    "é{0}",
    "back\\slash",
    "%s",
]


@pytest.mark.slow
@pytest.mark.spark
def test_a_project_of_odd_names_runs_as_it_was_written(
    tmp_path: Path, old_pg: Database, new_pg: Database, spark: SparkSession
) -> None:
    def quoted(name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    tables = ["a b", "a-b", "class", "new\nline", "ﬁ", "flag"]
    for place, name in enumerate(tables):
        columns = ", ".join(f"{quoted(one)} int" for one in ODD_COLUMNS)
        made = f"CREATE TABLE {quoted(name)} (id int PRIMARY KEY, {columns})"
        old_pg.execute(made, f"ALTER TABLE {quoted(name)} REPLICA IDENTITY FULL")
        new_pg.execute(made)
        values = ", ".join(str(place * 100 + number) for number in range(len(ODD_COLUMNS) + 1))
        connection = old_pg.connect()
        connection.execute(f"INSERT INTO {quoted(name)} VALUES ({values})".encode())
        connection.close()
    folder = tmp_path / "odd"
    arguments = ["init", str(folder), "--source-url", url(old_pg), "--target-url", url(new_pg)]
    assert CliRunner().invoke(cli, arguments, catch_exceptions=False).exit_code == 0
    config = folder / "migration.toml"
    config.write_text(config.read_text() + '\n[spark]\nmaster = "local[2]"\n')
    project = Project(old_pg, new_pg, config)
    assert project.command("schema", "upgrade") == 0
    assert project.command("check") == 0
    project.run_here()
    for name in tables:
        rows = f"SELECT * FROM {quoted(name)}"
        assert new_pg.query(rows) == old_pg.query(rows)
    done = project_tests(folder)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--source-url", "mysql://u@h/d"], "one URL alone"),
        (["--source-url", "mysql://u:secret@h/d", "--target-url", "mysql://u@h/d"], "--source-password-env"),
        (["--source-url", "oracle://u@h/d", "--target-url", "mysql://u@h/d"], "'oracle' is none of"),
        (["--source-url", "mysql://h/d", "--target-url", "mysql://u@h/d"], "it lacks user"),
        (["--source-url", "mysql://u@h:x/d", "--target-url", "mysql://u@h/d"], "can't be read"),
        (["--source-url", "mysql://u@h/d?schema=x", "--target-url", "mysql://u@h/d"], "only PostgreSQL"),
        (["--source-url", "mysql://u@h/d?tls=x", "--target-url", "mysql://u@h/d"], "unknown: tls"),
    ],
)
def test_urls_that_cant_be_used_are_refused(tmp_path: Path, arguments: list[str], says: str) -> None:
    with pytest.raises(MigratorError) as failure:
        cli.main(["init", str(tmp_path / "shop"), *arguments], standalone_mode=False)
    assert says in str(failure.value)
    assert "secret" not in str(failure.value)
    assert not (tmp_path / "shop").exists()


def test_a_server_that_doesnt_answer_leaves_no_half_project(tmp_path: Path, new_pg: Database) -> None:
    arguments = ["--source-url", "postgresql://u@127.0.0.1:1/d", "--target-url", url(new_pg)]
    with pytest.raises(MigratorError):
        cli.main(["init", str(tmp_path / "shop"), *arguments], standalone_mode=False)
    assert not (tmp_path / "shop").exists()
