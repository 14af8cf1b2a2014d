"""A planted fault of the mapping: verified, collected under pseudonyms, replayed, shrunk, a test red, then green."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from migrator.config import project as configuration
from migrator.wiring import parts as wiring
from scenarios.chaos.incident.commands import incident
from scenarios.chaos.incident.failure import Judgement
from scenarios.chaos.incident.incident_file import packed, unpacked
from scenarios.chaos.incident.replay import replay
from scenarios.chaos.incident.shrink import shrunk
from scenarios.project import make_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

PROJECT = Path(__file__).parent / "grain_project"
NAMES = ["Ottoline Hargreaves", "Bartholomew Quince", "Persephone Vandermeer", "Ignatius Okonkwo"]
TABLES = (
    "CREATE TABLE customer (customer_id int PRIMARY KEY, name varchar(40) NOT NULL, email varchar(60) UNIQUE,"
    " state varchar(10) NOT NULL, born date)",
    "CREATE TABLE orders (order_id int PRIMARY KEY, customer_id int NOT NULL REFERENCES customer (customer_id),"
    " note varchar(80), total decimal(12,2))",
)
LATER = (
    "INSERT INTO orders VALUES (70210077, 41700019, 'Gift wrapped for Theodora', 8123.45)",
    "UPDATE customer SET email = 'Quince.New@Correspondence.example' WHERE customer_id = 41700012",
    "DELETE FROM orders WHERE order_id = 70210003",
)


def customers() -> list[tuple[int, str, str, str, str]]:
    return [
        (
            41700005 + 7 * number,
            name,
            f"{name.replace(' ', '.')}@Correspondence.example",
            ("active", "dormant state")[number % 2][:10],
            f"19{62 + number}-03-1{number}",
        )
        for number, name in enumerate(NAMES)
    ]


def purchases() -> list[tuple[int, int, str, str]]:
    return [
        (
            70210001 + number,
            41700005 + 7 * (number % 4),
            f"Deliver to Wisteria Lane {8100 + number}",
            f"{4711 + number}.50",
        )
        for number in range(8)
    ]


def in_step_but_for_the_fault(folder: Path, old: Database, new: Database) -> Project:
    """The project run over a dump and some changes, and found different."""
    old.execute(*TABLES)
    for row in customers():
        old.execute(f"INSERT INTO customer VALUES {row}")
    for purchase in purchases():
        old.execute(f"INSERT INTO orders VALUES {purchase}")
    if old.kind == "postgresql":
        old.execute("ALTER TABLE customer REPLICA IDENTITY FULL", "ALTER TABLE orders REPLICA IDENTITY FULL")
    config = make_project(folder, scenario_database(old), scenario_database(new), PROJECT, "incident")
    config.write_text(
        config.read_text() + '\n[spark]\nmaster = "local[2]"\n\n[capture]\nkeep_applied_bytes = 10000000\n'
    )
    wiring.upgrade_user_target(configuration.load(config))
    project = Project(old, new, config)
    project.run_here()
    old.execute(*LATER)
    project.run_here()
    assert project.command("verify") == 1, "the planted fault isn't seen"
    return project


def originals() -> list[str]:
    """Every value of the old rows that isn't one of the mapping's constants, in all their versions."""
    found = [str(one) for row in (*customers(), *purchases()) for one in row if one != "active"]
    return [*found, "70210077", "Gift wrapped for Theodora", "8123.45", "Quince.New@Correspondence.example"]


def occurring(file: Path, values: Iterable[str]) -> list[str]:
    """Those values that occur in a file's parts, in any of the usual encodings."""
    with zipfile.ZipFile(file) as found:
        content = b"\n".join(found.read(name) for name in found.namelist())
    lower = content.lower()
    return [value for value in values if any(form in lower for form in forms(value))]


def forms(value: str) -> list[bytes]:
    plain = [
        value.encode("utf-8"),
        value.encode("latin-1", "replace"),
        value.encode("utf-16-le"),
        value.encode("utf-16-be"),
    ]
    coded = [plain[0].hex().encode()]
    for shift in range(3):  # base64 of a longer text that has the value somewhere
        code = base64.b64encode(b"\0" * shift + plain[0])
        coded.append(code[(0, 2, 3)[shift] : len(code) - 4])
    return [one.lower() for one in (*plain, *coded) if len(one) >= 6]


def run(*arguments: str) -> int:
    return incident.main(list(arguments), standalone_mode=False) or 0


def run_of_its_tests(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=folder,
        env={**os.environ},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_an_incident_becomes_a_test(tmp_path: Path, old_pg: Database, new_pg: Database) -> None:
    project = in_step_but_for_the_fault(tmp_path / "production", old_pg, new_pg)
    open_, file = tmp_path / "open.zip", tmp_path / "incident.zip"
    assert run("collect", "--config", str(project.config), "-o", str(open_)) == 0
    assert run("collect", "--config", str(project.config), "--anonymise", "-o", str(file)) == 0

    assert len(occurring(open_, originals())) == len(originals()), "the search finds nothing at all"
    assert occurring(file, originals()) == []
    assert occurring(file, [str(project.config.parent), old_pg.database, new_pg.database]) == []
    manifest = json.loads(zipfile.ZipFile(file).read("manifest.json"))
    assert manifest["missing"] == []
    assert manifest["kept"]["customer.state"] == ["active"]
    assert {one["column"]: one["treatment"] for one in manifest["treatments"]}["orders.total"] == "number"

    shutil.rmtree(project.config.parent / ".migrator")  # elsewhere nothing of it is there
    found = replay(unpacked(file))
    assert found.judgement is Judgement.REPRODUCED, (found.reason, found.log[-3000:])
    assert {one.target for one in found.found.wrong} == {"purchase"}

    attempts = list[str]()
    small = shrunk(unpacked(file), 240.0, attempts.append)
    assert small is not None
    assert small.history.rows() < unpacked(file).history.rows() / 2, attempts

    elsewhere = tmp_path / "elsewhere"
    shutil.copytree(project.config.parent, elsewhere)
    file.write_bytes(packed(small))
    assert run("add", str(file), "--to", str(elsewhere / "tests"), "--name", "of_buyer") == 0
    red = run_of_its_tests(elsewhere)
    assert red.returncode == 1, red.stdout + red.stderr
    assert "purchase" in red.stdout
    mapping = elsewhere / "mapping.py"
    mapping.write_text(mapping.read_text().replace('grain="orders.order_id"', 'grain="orders.customer_id"'))
    green = run_of_its_tests(elsewhere)
    assert green.returncode == 0, green.stdout + green.stderr


@pytest.mark.slow
def test_swapped_columns_are_reproduced_by_what_is_expected_and_mended(
    tmp_path: Path, old_pg: Database, new_pg: Database
) -> None:
    """A fault that no verification sees: what the mapping says is right by definition."""
    old_pg.execute(*TABLES, f"INSERT INTO customer VALUES {customers()[0]}")
    old_pg.execute(f"INSERT INTO orders VALUES {purchases()[0]}")
    config = make_project(
        tmp_path / "production", scenario_database(old_pg), scenario_database(new_pg), PROJECT, "incident"
    )
    mapping, file = config.parent / "mapping.py", tmp_path / "incident.zip"
    right, wrong = 'F.trim("name").alias("name")', 'F.col("state").alias("name")'
    mapping.write_text(
        mapping.read_text().replace(right, wrong).replace('"orders.order_id"', '"orders.customer_id"')
    )
    expected = f"person:{customers()[0][0]}:name={NAMES[0]}"
    options = ["--config", str(config), "--anonymise", "--expect", expected, "-o", str(file)]
    assert run("collect", *options) == 0
    assert occurring(file, NAMES[:1]) == []
    found = replay(unpacked(file))
    assert found.judgement is Judgement.REPRODUCED, found.reason
    mapping.write_text(mapping.read_text().replace(wrong, right))
    mended = replay(unpacked(file), config)
    assert mended.judgement is Judgement.NOT_REPRODUCED, mended.reason
    assert not mended.found.anything()
    assert mended.found.checked == 2


@pytest.mark.slow
def test_what_only_the_target_has_is_not_reproduced(
    tmp_path: Path, old_pg: Database, new_pg: Database
) -> None:
    """Without the event log, and of a table that is too large to be read as a whole."""
    project = in_step_but_for_the_fault(tmp_path / "production", old_pg, new_pg)
    shutil.rmtree(project.config.parent / ".migrator" / "eventlog")
    file = tmp_path / "incident.zip"
    options = [
        "--config",
        str(project.config),
        "--keys",
        "orders:70210005",
        "--most-rows",
        "4",
        "-o",
        str(file),
    ]
    assert run("collect", *options) == 0
    found = unpacked(file)
    assert {row["order_id"] for row in found.history.start["orders"]} == {"70210001", "70210005"}
    assert any("orders: it has more than 4 rows" in one for one in found.facts["left_out"])
    assert {one["part"] for one in found.facts["missing"]} == {"event log"}
    done = replay(found)
    assert done.judgement is Judgement.NOT_REPRODUCED, done.reason


@pytest.mark.slow
def test_an_incident_of_mariadb_is_reproduced(tmp_path: Path, old_maria: Database, new_pg: Database) -> None:
    project = in_step_but_for_the_fault(tmp_path / "production", old_maria, new_pg)
    file = tmp_path / "incident.zip"
    assert run("collect", "--config", str(project.config), "--anonymise", "-o", str(file)) == 0
    assert occurring(file, originals()) == []
    found = replay(unpacked(file))
    assert found.judgement is Judgement.REPRODUCED, (found.reason, found.log[-3000:])
