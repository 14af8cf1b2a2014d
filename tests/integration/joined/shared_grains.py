"""A project whose mappings share grains (docs/how-to/mapping/grains.md) between any two engines, its writers, and
an oracle in plain Python.

The default collations of MySQL and MariaDB take 'Ghent' and 'ghent' for one, Spark does not: their new tables compare
as it does, the old ones as they like.
"""

from __future__ import annotations

import random
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from migrator.adapters.targets.mysql.mirror.names import mirror_table
from migrator.adapters.targets.mysql.rows.merge import qualified
from migrator.model.table import TableId
from scenarios.project import make_project
from tests.integration.joined.test_grains_document import blocks, statements
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

NAME = "grains"
"""The migration's."""
TABLES = {
    "article": ("id", "id, writer"),
    "article_tag": ("article_id, tag", "article_id, tag"),
    "customer": ("id", "id, place"),
    "employee": ("id", "id, place"),
    "invoice": ("id", "id, billed_to, total"),
    "post": ("id", "id, written"),
    "remark": ("id", "id, post_id, written"),
}
PLACES = ("Ghent", "ghent", "Lyon", "Oslo ", "Oslo", "", None)
EXACT = {"mysql": "utf8mb4_0900_bin", "mariadb": "utf8mb4_nopad_bin"}
"""Texts that differ at all are two."""
DAMAGE = (
    "UPDATE tag SET articles = articles + 1 WHERE tag = 'tag 1'",
    "DELETE FROM address WHERE place = 'Ghent'",
    "UPDATE address SET employees = employees + 1 WHERE place = 'Lyon'",
    "INSERT INTO address VALUES ('nowhere', 1, 1, 1, 1)",
    "UPDATE month_written SET remarks = remarks + 1 WHERE month = '2021-03-01'",
    "INSERT INTO month_written VALUES ('1999-01-01', 1, 1)",
)
PLACED = (
    "INSERT INTO customer VALUES (901, 'Ghent'), (902, 'Lyon'), (903, 'ghent')",
    "INSERT INTO employee VALUES (901, 'Ghent'), (902, 'Lyon'), (903, 'ghent')",
    "INSERT INTO invoice VALUES (901, 'Ghent', 7.25), (902, 'Lyon', 1.00), (903, 'ghent', 2.00)",
    "INSERT INTO article VALUES (901, 'writer 1'), (902, 'writer 2')",
    "INSERT INTO article_tag VALUES (901, 'tag 1'), (902, 'tag 1'), (901, 'tag 2')",
    "INSERT INTO post VALUES (901, '2021-03-04 10:00')",
    "INSERT INTO remark VALUES (901, 1, '2021-03-05 10:00')",
)


def declared(statement: str, kind: str, exact: bool) -> str:
    """A statement of the document as an engine takes it."""
    if kind == "postgresql":
        return statement
    statement = re.sub(r"\btimestamp\b", "datetime", statement)
    if exact and statement.startswith("CREATE TABLE"):
        return f"{statement} COLLATE {EXACT[kind]}"
    return statement


def make(folder: Path, old: Database, new: Database) -> Project:
    source = folder / "source"
    (source / "alembic" / "versions").mkdir(parents=True)
    mapping = "\n\n".join(block for block in blocks("python") if "def story_tag" not in block)
    if old.kind != "postgresql":
        mapping = mapping.replace(
            "F.trunc(rows.written,", "F.trunc(F.to_date(F.substring(rows.written, 1, 10)),"
        )
    (source / "mapping.py").write_text(mapping)
    old.execute(*(declared(one, old.kind, False) for one in statements("old")))
    if old.kind == "postgresql":
        old.execute(*(f"ALTER TABLE {one} REPLICA IDENTITY FULL" for one in TABLES))
    new.execute(*(declared(one, new.kind, True) for one in statements("new") if "story" not in one))
    more = ("[spark]", 'master = "local[2]"', "[apply]", "slice_grains = 4")
    sides = scenario_database(old), scenario_database(new)
    return Project(old, new, make_project(folder / "project", *sides, source, NAME, more))


def place(chosen: random.Random) -> str | None:
    return chosen.choice([*PLACES, f"street {chosen.randrange(8)}"])


def moment(chosen: random.Random) -> str | None:
    day = f"{chosen.randrange(2020, 2023)}-{chosen.randrange(1, 13):02}-{chosen.randrange(1, 28):02}"
    return chosen.choice([f"{day} 10:00", day, None])


def values(chosen: random.Random, table: str) -> list[object]:
    drawn: dict[str, Callable[[], list[object]]] = {
        "article": lambda: [f"writer {chosen.randrange(4)}"],
        "article_tag": lambda: [chosen.choice(["tag", "Tag"]) + f" {chosen.randrange(9)}"],
        "customer": lambda: [place(chosen)],
        "employee": lambda: [place(chosen)],
        "invoice": lambda: [place(chosen), f"{chosen.randrange(1000)}.25"],
        "post": lambda: [moment(chosen)],
        "remark": lambda: [chosen.randrange(9), moment(chosen)],
    }
    return drawn[table]()


def write(project: Project, chosen: random.Random, many: int) -> None:
    """One transaction: rows come, move between grains and go; now and then all of a value go in one table."""
    ignoring = (
        ("INSERT", " ON CONFLICT DO NOTHING") if project.old.kind == "postgresql" else ("INSERT IGNORE", "")
    )
    connection = project.old.connect(autocommit=False)
    cursor = connection.cursor()
    for _ in range(many):
        table, key = chosen.choice(sorted(TABLES)), chosen.randrange(40)
        identity, names = TABLES[table]
        found, kind = values(chosen, table), chosen.randrange(10)
        name = identity.partition(",")[0]
        if kind < 5 or (kind < 8 and table == "article_tag"):
            marks = ", ".join(["%s"] * (1 + len(found)))
            cursor.execute(
                f"{ignoring[0]} INTO {table} ({names}) VALUES ({marks}){ignoring[1]}", [key, *found]
            )
        elif kind < 8:
            sets = ", ".join(f"{one} = %s" for one in names.split(", ")[1:])
            cursor.execute(f"UPDATE {table} SET {sets} WHERE {name} = %s", [*found, key])
        elif kind < 9:
            cursor.execute(f"DELETE FROM {table} WHERE {name} = %s", [key])
        else:
            one = chosen.choice(["customer", "employee"])
            cursor.execute(f"DELETE FROM {one} WHERE place = %s", [place(chosen)])
    connection.commit()
    connection.close()


def wanted(project: Project) -> dict[str, set[tuple[str, ...]]]:
    """What each new table must hold, counted in plain Python."""
    rows = {table: project.old.query(f"SELECT {names} FROM {table}") for table, (_, names) in TABLES.items()}
    writers = dict(rows["article"])
    uses: dict[str, list[object]] = {}
    for article, tag in rows["article_tag"]:
        if article in writers:
            uses.setdefault(tag, []).append(writers[article])
    tags: set[tuple[str, ...]] = {
        (tag, str(len(of)), str(len({one for one in of if one is not None}))) for tag, of in uses.items()
    }
    places: dict[str, list[object]] = {}
    for number, table in enumerate(("customer", "employee", "invoice")):
        for _, at, *amount in rows[table]:
            if at is not None:
                counted = places.setdefault(at, [0, 0, 0, 0])
                counted[number] += 1  # type: ignore[operator]
                counted[3] += amount[0] if amount else 0  # type: ignore[operator]
    months: dict[str, list[int]] = {}
    for number, table in enumerate(("post", "remark")):
        for *_, at in rows[table]:
            if at is not None:
                months.setdefault(str(at)[:8] + "01", [0, 0])[number] += 1
    return {
        "tag": tags,
        "address": {(at, *map(str, of[:3]), f"{of[3]:.2f}") for at, of in places.items()},
        "month_written": {(month, *map(str, of)) for month, of in months.items()},
    }


def differences(project: Project) -> dict[str, set[tuple[str, ...]]]:
    found = {}
    for table, rows in wanted(project).items():
        assert rows, f"an empty table {table} proves nothing"
        actual = {tuple(map(str, one)) for one in project.new.query(f"SELECT * FROM {table}")}
        if actual != rows:
            found[table] = actual ^ rows
    return found


def mirrored(new: Database, table: str) -> str:
    """The quoted name of what the target keeps of an old table."""
    if new.kind == "postgresql":
        return f'migrator_mirror."{NAME}.{table}"'
    return qualified(mirror_table(new.database, NAME, TableId(new.database, table)))


@contextmanager
def writing(project: Project, seed: int) -> Iterator[None]:
    """Random transactions on all tables, one after the other, for as long as the block runs."""
    stop, chosen = threading.Event(), random.Random(seed)

    def go_on() -> None:
        while not stop.wait(0.2):
            write(project, chosen, 5)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
