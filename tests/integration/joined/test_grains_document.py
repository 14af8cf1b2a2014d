"""The worked examples of docs/how-to/mapping/grains.md as they stand there: run, written to, judged by plain SQL."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from scenarios.project import make_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database

pytestmark = [pytest.mark.integration, pytest.mark.spark]

DOCUMENT = Path(__file__).parents[3] / "docs" / "how-to" / "mapping" / "grains.md"
PLACES = ("'Ghent'", "'ghent'", "'Lyon'", "'Oslo '", "'Oslo'", "''", "NULL")
EXPECTED = {
    "tag": "SELECT tag, count(*), count(DISTINCT writer) FROM article_tag JOIN article ON article_id = id"
    " GROUP BY tag",
    "story_tag": "SELECT DISTINCT id, unnest(string_to_array(nullif(tags, ''), ',')) FROM story",
    "story_tag_use": "SELECT tag, count(DISTINCT id)"
    " FROM (SELECT id, unnest(string_to_array(nullif(tags, ''), ',')) AS tag FROM story) tags GROUP BY tag",
    "address": """
        SELECT place, sum(c), sum(e), sum(i), sum(t)::numeric(12,2) FROM (
            SELECT place, 1 AS c, 0 AS e, 0 AS i, 0.00 AS t FROM customer
            UNION ALL SELECT place, 0, 1, 0, 0 FROM employee
            UNION ALL SELECT billed_to, 0, 0, 1, total FROM invoice) used
        WHERE place IS NOT NULL GROUP BY place""",
    "month_written": """
        SELECT month, sum(p), sum(r) FROM (
            SELECT date_trunc('month', written)::date AS month, 1 AS p, 0 AS r FROM post
            UNION ALL SELECT date_trunc('month', written)::date, 0, 1 FROM remark) written
        WHERE month IS NOT NULL GROUP BY month""",
}
"""What each new table holds, said to the old server."""
ALONE = " AND (SELECT count(*) FROM article_tag other WHERE other.article_id = article_tag.article_id) = 1"
TABLES = ("article", "article_tag", "story", "customer", "employee", "invoice", "post", "remark")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT.read_text(), re.DOTALL | re.MULTILINE)


def statements(kind: str) -> list[str]:
    return [one.strip() for block in blocks(f"sql {kind}") for one in block.split(";") if one.strip()]


def make(folder: Path, old: Database, new: Database) -> Project:
    source = folder / "source"
    (source / "alembic" / "versions").mkdir(parents=True)
    (source / "mapping.py").write_text("\n\n".join(blocks("python")))
    old.execute(*statements("old"), *(f"ALTER TABLE {one} REPLICA IDENTITY FULL" for one in TABLES))
    new.execute(*statements("new"))
    more = ("[spark]", 'master = "local[2]"', "[apply]", "slice_grains = 4")
    sides = scenario_database(old), scenario_database(new)
    return Project(old, new, make_project(folder / "project", *sides, source, "grains", more))


def place(chosen: random.Random) -> str:
    return chosen.choice([*PLACES, f"'street {chosen.randrange(8)}'"])


def tags(chosen: random.Random) -> str:
    return "'" + ",".join(f"tag {chosen.randrange(9)}" for _ in range(chosen.randrange(4))) + "'"


def moment(chosen: random.Random) -> str:
    day = f"{chosen.randrange(2020, 2023)}-{chosen.randrange(1, 13):02}-{chosen.randrange(1, 28):02}"
    return chosen.choice([f"'{day} 10:00'", f"'{day}'", "NULL"])


def row(chosen: random.Random, table: str, key: int) -> str:
    values = {
        "article": lambda: f"'writer {chosen.randrange(4)}'",
        "article_tag": lambda: f"'tag {chosen.randrange(9)}'",
        "story": lambda: tags(chosen),
        "customer": lambda: place(chosen),
        "employee": lambda: place(chosen),
        "invoice": lambda: f"{place(chosen)}, {chosen.randrange(1000)}.25",
        "post": lambda: moment(chosen),
        "remark": lambda: f"{chosen.randrange(9)}, {moment(chosen)}",
    }  # fmt: skip
    return f"INSERT INTO {table} VALUES ({key}, {values[table]()}) ON CONFLICT DO NOTHING"


def write(project: Project, chosen: random.Random, many: int) -> None:
    """One transaction: rows come, move between grains and go; now and then all of a value go in one table."""
    moves = {
        "article": lambda: f"writer = 'writer {chosen.randrange(4)}'",
        "article_tag": lambda: f"tag = 'tag {chosen.randrange(9)}'",
        "story": lambda: f"tags = {tags(chosen)}",
        "customer": lambda: f"place = {place(chosen)}",
        "employee": lambda: f"place = {place(chosen)}",
        "invoice": lambda: f"billed_to = {place(chosen)}, total = total + 1",
        "post": lambda: f"written = {moment(chosen)}",
        "remark": lambda: f"written = {moment(chosen)}",
    }
    with project.old.connect(autocommit=False) as connection:
        for _ in range(many):
            table, key = chosen.choice(TABLES), chosen.randrange(40)
            name = "article_id" if table == "article_tag" else "id"
            kind = chosen.randrange(10)
            if kind < 5:
                connection.execute(row(chosen, table, key))
            elif kind < 8:
                which = f"{name} = {key}" + (ALONE if table == "article_tag" else "")
                connection.execute(f"UPDATE {table} SET {moves[table]()} WHERE {which}")
            elif kind < 9:
                connection.execute(f"DELETE FROM {table} WHERE {name} = {key}")
            else:
                one = chosen.choice(["customer", "employee"])
                connection.execute(f"DELETE FROM {one} WHERE place = {place(chosen)}")
        connection.commit()


def differences(project: Project) -> dict[str, list[tuple[str, ...]]]:
    found = {}
    for table, query in EXPECTED.items():
        wanted = sorted(tuple(map(str, one)) for one in project.old.query(query))
        actual = sorted(tuple(map(str, one)) for one in project.new.query(f"SELECT * FROM {table}"))
        assert wanted, f"an empty table {table} proves nothing"
        if wanted != actual:
            found[table] = sorted(set(wanted) ^ set(actual))
    return found


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, new_pg: Database) -> Project:
    made = make(tmp_path, old_pg, new_pg)
    write(made, random.Random(1), 300)
    return made


@pytest.mark.slow
def test_the_examples_are_right_while_rows_come_move_and_go(project: Project, spark: SparkSession) -> None:
    chosen = random.Random(2)
    project.run_here()
    assert differences(project) == {}
    write(project, chosen, 60)
    project.run_here()
    assert differences(project) == {}
    assert project.command("verify", "--wait", "20") == 0
    project.new.execute("UPDATE address SET employees = employees + 1")
    assert project.command("verify", "--wait", "5") == 1, "the judge sees a wrong count"
