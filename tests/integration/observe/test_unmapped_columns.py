"""Columns that no mapping reads or fills: their values stand in nothing that is written for somebody to read.

Raw captured data isn't: the event log and what is beside it, as docs/how-to/secrets.md lists it.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import urllib.request
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from migrator.config import project as configuration
from tests.integration import run_project
from tests.integration.run_project import Project
from tests.integration.runs.test_secrecy import finds
from tests.integration.waiting import await_true
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

OLD_SECRET, NEW_SECRET = "Xq8Vn3Kd7Wp1", "Hz5Tb9Lc2Rm6"
"""In each column that no mapping reads, and in each that none fills."""
NAME = "Mw4Jf6Ys0Gk"
"""In a column that is mapped: the control, which must be found."""
RAW = ("eventlog", "slots", "spill", "spark-code")
"""Folders of the state folder with captured data as it came, or with code."""
PATIENCE_S = 240.0
MAPPING = """
from pyspark.sql import functions as F
from transforms import Mapping

mapping = Mapping()


@mapping.target("person", key="id")
def person(person):
    return person.select("id", "name", "age")


@mapping.target("spent", key="id", grain="person.id", links=["visit.person_id = person.id"])
def spent(person, visit):
    summed = visit.groupBy("person_id").agg(F.sum(F.col("cost").cast("int")).cast("int").alias("total"))
    return person.join(summed, person.id == summed.person_id, "left").select(
        "id", "name", F.coalesce("total", F.lit(0)).alias("total")
    )
"""
QUERIES = {
    "format": 1,
    "queries": [
        {
            "name": "a person",
            "old": "SELECT name, age FROM person WHERE id = :id",
            "new": "SELECT name, age FROM person WHERE id = :id",
            "parameters": {"id": {"from": 1, "to": 9}},
        }
    ],
}


@pytest.fixture(
    params=[("old_pg", "new_pg"), pytest.param(("old_maria", "new_mysql"), marks=pytest.mark.slow)], ids=str
)
def project(request: pytest.FixtureRequest, tmp_path: Path) -> Project:
    """Rows with secrets; one that the target refuses, with all of its row in its words, one that can't be mapped."""
    old, new = (request.getfixturevalue(name) for name in request.param)
    old.execute(
        "CREATE TABLE person (id int PRIMARY KEY, password varchar(60) NOT NULL, name varchar(60) NOT NULL,"
        " age int NOT NULL)",
        "CREATE TABLE visit (id int PRIMARY KEY, person_id int NOT NULL, cost varchar(20) NOT NULL,"
        " token varchar(60) NOT NULL)",
    )
    if old.kind == "postgresql":
        old.execute(*(f"ALTER TABLE {table} REPLICA IDENTITY FULL" for table in ("person", "visit")))
    for key in range(1, 10):
        age, cost = (200 if key == 7 else 30 + key), ("none" if key == 5 else "12")
        old.execute(
            f"INSERT INTO person VALUES ({key}, '{OLD_SECRET}{key}', '{NAME}{key}', {age})",
            f"INSERT INTO visit VALUES ({key}, {key}, '{cost}', '{OLD_SECRET}v{key}')",
        )
    new.execute(
        f"CREATE TABLE person (id int PRIMARY KEY, secret varchar(60) NOT NULL DEFAULT '{NEW_SECRET}',"
        " name varchar(60) NOT NULL, age int NOT NULL, CONSTRAINT young CHECK (age < 150))",
        f"CREATE TABLE spent (id int PRIMARY KEY, secret varchar(60) NOT NULL DEFAULT '{NEW_SECRET}',"
        " name varchar(60) NOT NULL, total int NOT NULL)",
    )
    made = run_project.written(tmp_path / "made", old, new, "shop", MAPPING)
    made.config.write_text(made.config.read_text() + '\n[apply]\nbad_rows = "set_aside"\n')
    (made.config.parent / "queries.json").write_text(json.dumps(QUERIES))
    return made


class Said:
    """A folder with everything that commands and pages said, a file each."""

    def __init__(self, project: Project, folder: Path):
        self.project, self.folder = project, folder
        folder.mkdir()

    def command(self, *arguments: str, codes: tuple[int, ...] = (0, 1, 3)) -> None:
        file = self.folder / f"{len(list(self.folder.iterdir())):02}-{'-'.join(arguments[:2])}.txt".replace(
            "/", "_"
        )
        with file.open("wb") as output:
            done = subprocess.run(
                [sys.executable, "-m", "migrator", *arguments, "--config", str(self.project.config)],
                stdout=output,
                stderr=output,
                cwd=self.project.config.parent,
                timeout=PATIENCE_S,
                check=False,
            )
        assert done.returncode in codes, file.read_text()

    def page(self, url: str) -> None:
        for name in ("", "live.json", "hour.json", "metrics", "healthz", "readyz"):
            with urllib.request.urlopen(f"{url}/{name}", timeout=30) as answer:
                (self.folder / f"page-{name or 'index'}").write_bytes(answer.read())


def spoil(new: Database) -> None:
    """Rows that differ in each way."""
    new.execute(
        "UPDATE person SET name = 'wrong' WHERE id = 1",
        "DELETE FROM person WHERE id = 2",
        f"INSERT INTO person VALUES (99, '{NEW_SECRET}x', 'rogue', 3)",
        "UPDATE spent SET total = 7777 WHERE id = 3",
        f"INSERT INTO spent VALUES (98, '{NEW_SECRET}y', 'rogue', 3)",
    )


def told(project: Project, said: Said, word: str) -> list[str]:
    """Places with the word, in what was said and in what the state folder has for readers."""
    state = configuration.load(project.config).state
    beside = [path for path in state.iterdir() if path.name not in RAW]
    assert {"reports", "run.log"} <= {path.name for path in beside}
    found = finds(said.folder, word)
    for path in beside:
        if path.is_dir():
            found += [f"{path.name}/{one}" for one in finds(path, word)]
        else:
            found += [path.name] if word.encode() in path.read_bytes() else []
    return found


def address() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


@pytest.mark.slow
def test_nothing_that_is_written_for_readers_has_a_value_of_an_unmapped_column(
    project: Project, tmp_path: Path
) -> None:
    said = Said(project, tmp_path / "said")
    said.command("check", codes=(0, 1, 2, 3))
    said.command("explain")
    said.command("try", "person")
    said.command("try", "spent", "--json", "--linked", "9")
    said.command("run", "--plain", "--until", "caught-up")
    said.command("rows", "set-aside")
    said.command("rows", "set-aside", "--json")
    spoil(project.new)
    said.command("verify", "--json", codes=(1,))
    said.command("repair", "--json")
    said.command("repair", "--sql", str(said.folder / "fix.sql"))
    said.command("status")
    said.command("status", "--json", codes=(0, 1, 3, 4, 5))
    beside(project, said)
    said.command("history", "--json")
    said.command("sequences")
    said.command("incident", "collect", "--anonymise", "-o", str(tmp_path / "incident.zip"))
    with zipfile.ZipFile(tmp_path / "incident.zip") as bundle:
        bundle.extractall(said.folder / "incident")
    assert told(project, said, OLD_SECRET) == []
    assert told(project, said, NEW_SECRET) == []
    seen = told(project, said, NAME)
    for place in ("verify.json", "verify.html", "verify.txt", "fix.sql", "set-aside", "try"):
        assert any(place in one for one in seen), f"the control: mapped values stand in {place}"


def beside(project: Project, said: Said) -> None:
    """What is said while a run leads: its page, a repair, rows that are tried again, a dual read."""
    at = address()
    with (said.folder / "run").open("wb") as output:
        leads = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "migrator",
                "run",
                "--plain",
                "--listen",
                at,
                "--config",
                str(project.config),
            ],
            stdout=output,
            stderr=output,
        )
    try:
        await_true(lambda: answers(f"http://{at}/readyz"), "the run is ready", PATIENCE_S)
        project.old.execute("UPDATE person SET age = 201 WHERE id = 6")
        said.command("repair", "--apply")
        said.command("rows", "retry")
        said.command("dual-read", "run", "queries.json")
        said.command("dump", "start", "--table", "person", "--from", "1", "--to", "9")
        said.page(f"http://{at}")
    finally:
        leads.terminate()
        leads.communicate(timeout=120)


def answers(url: str) -> bool:
    with suppress(OSError), urllib.request.urlopen(url, timeout=10) as answer:
        return bool(answer.status == 200)
    return False
