"""Seeded DDL on columns that no mapping needs, beside writers and a run that is killed and started again."""

from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.integration.run_project import Project
from tests.integration.runs.ddl.altered_shop import begun, changes, judged
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

TABLES = ("orders", "product", "order_line", "category")
TYPES = {
    "pg": (
        "int",
        "bigint",
        "text",
        "varchar(9)",
        "numeric(9,2)",
        "timestamp",
        "boolean",
        "jsonb",
        "uuid",
        "int[]",
    ),
    "maria": (
        "int",
        "bigint unsigned",
        "text",
        "varchar(9)",
        "decimal(9,2)",
        "datetime(3)",
        "blob",
        "enum('a','b')",
    ),
}
TYPES["mysql"] = (*TYPES["maria"], "json")


class Alterations:
    """What is done to columns that nothing needs, one statement after the other, from a seed."""

    def __init__(self, engine: str, seed: int):
        self._types = TYPES[engine]
        self._chance = random.Random(seed)
        self._engine = engine
        self._there: dict[str, list[str]] = {table: ["gone", "worn", "odd", "fit"] for table in TABLES}
        self._fresh = 0

    def next(self) -> str:
        """A statement that the server takes."""
        chance = self._chance
        table = chance.choice(TABLES)
        there = self._there[table]
        if not there or chance.random() < 0.35:
            name = chance.choice([n for n in ("gone", "worn", "odd", self._named()) if n not in there])
            there.append(name)
            return f"ALTER TABLE {table} ADD {self._quoted(name)} {chance.choice(self._types)}"
        name = there.pop(chance.randrange(len(there)))
        what = chance.choice(("drop", "rename", "retype"))
        if what == "drop":
            return f"ALTER TABLE {table} DROP COLUMN {self._quoted(name)}"
        if what == "rename":
            new = self._named()
            there.append(new)
            return f"ALTER TABLE {table} RENAME COLUMN {self._quoted(name)} TO {self._quoted(new)}"
        there.append(name)
        kind = chance.choice(self._types)
        if self._engine == "pg":
            column = self._quoted(name)
            return f"ALTER TABLE {table} ALTER {column} DROP DEFAULT, ALTER {column} TYPE {kind} USING NULL"
        return f"ALTER TABLE {table} DROP COLUMN {self._quoted(name)}, ADD {self._quoted(name)} {kind} FIRST"

    def _named(self) -> str:
        self._fresh += 1
        return self._chance.choice(("x", "Mixed", "two words", "ünï")) + str(self._fresh)

    def _quoted(self, name: str) -> str:
        if self._engine == "pg":
            return name if name.islower() and name.isascii() and " " not in name else f'"{name}"'
        return f"`{name}`"


@contextmanager
def altering(old: Database, engine: str, seed: int) -> Iterator[None]:
    """Statements and changes one after the other, for as long as the block runs."""
    stop, done = threading.Event(), threading.Event()

    def run() -> None:
        alterations = Alterations(engine, seed)
        number = 200
        while not stop.wait(0.15):
            old.execute(*changes(number))
            number += 1
            if number % 2:
                old.execute(alterations.next())
        done.set()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    assert done.is_set(), "the server refused a statement"


def killed(project: Project, after_s: float) -> None:
    """A run that is killed after a while, and must not have ended by itself before."""
    process = project.process("run")
    try:
        until = time.monotonic() + after_s
        while time.monotonic() < until:
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.2)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate()


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("engine", ["pg", "maria", "mysql"])
def test_it_ends_equal(engine: str, seed: int, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    project = begun(engine, request, tmp_path)
    if engine == "pg":
        project.old.execute(*(f"ALTER TABLE {table} ALTER fit DROP DEFAULT" for table in TABLES))
    with altering(project.old, engine, seed):
        for after_s in (25.0, 30.0, 35.0):
            killed(project, after_s)
    project.run_here()
    project.run_here()
    judged(project)
