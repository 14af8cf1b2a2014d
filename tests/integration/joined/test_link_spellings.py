"""Links by columns whose servers take several spellings for one value: dumped, streamed, judged, repaired.

A link compares exactly, or by a value that the mapping computes on both sides; so does the oracle, in plain Python. A
foreign key that takes more for one is no link by itself.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from migrator.adapters.sources.mariadb.catalog import MariaCatalog
from migrator.adapters.sources.mysql.catalog import MysqlCatalog
from migrator.adapters.sources.postgres.catalog import PostgresCatalog
from migrator.config import project as configuration
from scenarios.project import make_project
from tests import fix_postgres_source
from tests.drawn import SEED, drawn
from tests.integration import binlog_reading
from tests.integration.commands.repair.test_repair import running
from tests.integration.joined.test_link_equality import EXACT_IN_POSTGRES
from tests.integration.key_spellings import CASES, MARIADB, MYSQL, POSTGRES, Kind
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database
from transforms.analysis.grain import reaches
from transforms.analysis.link_equality import compared_exactly
from transforms.declared_grain import GrainProblem
from transforms.registry import Mapping as Declared

pytestmark = pytest.mark.integration

PAIRS = [("old_pg", "new_pg"), ("old_mysql", "new_maria"), ("old_maria", "new_mysql")]
"""Each on servers of their own: what is written into a target stands in the log of its server, too."""
ENGINES = ["old_pg", "old_mysql", "old_maria"]
EXACT = [
    replace(one, groups=[[spelling] for group in one.groups for spelling in group])
    for one in EXACT_IN_POSTGRES[:2]
]
"""Kinds of PostgreSQL by which a foreign key is a link: each spelling is a value of its own."""
KINDS: Mapping[str, Sequence[Kind]] = {
    "postgresql": [one for one in (*EXACT, *POSTGRES) if not one.index and "public.=" not in str(one)],
    "mysql": MYSQL,
    "mariadb": MARIADB,
}
NO_LINK = ("array", "numerics", "double", "real")
"""Kinds by which nothing is linked: refused by name."""
EXACT_TEXT = {
    "postgresql": "text",
    "mysql": "varchar(200) COLLATE utf8mb4_0900_bin",
    "mariadb": "varchar(200) COLLATE utf8mb4_nopad_bin",
}
SHOWN = {
    "postgresql": "convert_to({0}::text, 'UTF8')",
    "mysql": "CAST(CONVERT({0} USING utf8mb4) AS BINARY)",
    "mariadb": "CAST(CONVERT({0} USING utf8mb4) AS BINARY)",
}
REFUSED = (psycopg.IntegrityError, pymysql.err.IntegrityError)
Row = tuple[Any, ...]


@dataclass(frozen=True)
class Link:
    """Tables ``c<n>`` and ``p<n>``, linked by ``k``; of each row of ``near`` how many are linked to it, their sum.

    ``foreign``: the server has a foreign key, so that parents are unique as its collation compares. ``way``:
    ``as it is``, ``folded`` by the mapping, or ``derived`` from the foreign key.
    """

    number: int
    kind: Kind
    foreign: bool
    near: str
    way: str

    def spellings(self) -> list[str]:
        return [one for group in self.kind.groups for one in group]

    def mapping(self) -> str:
        near, far = f"{self.near}{self.number}", f"{'pc'['cp'.index(self.near)]}{self.number}"
        child, parent = f"c{self.number}", f"p{self.number}"
        fold, declared = "({0})", f', links=["{child}.k = {parent}.k"]'
        if self.way == "folded":
            fold = "F.lower({0})"
            values = ", ".join(f'"{one}.folded": lambda t: F.lower(t["k"])' for one in (child, parent))
            declared = f', links=["{child}.folded = {parent}.folded"], values={{{values}}}'
        elif self.way == "derived":
            declared = ""
        condition = " == ".join(fold.format(f'F.col("{one}")') for one in ("k", "other"))
        return (
            f'@mapping.target("t{self.number}", key="id", grain="{near}.id"{declared})\n'
            f"def t{self.number}({child}, {parent}):\n"
            f'    far = {far}.select(F.col("k").alias("other"), F.col("n").alias("m"))\n'
            f'    linked = {near}.join(far, {condition}, "left").groupBy("id", "k")\n'
            '    return linked.agg(F.count("other").alias("many"), F.coalesce(F.sum("m"), F.lit(0)).alias("total"))'
        )

    def tables(self) -> list[str]:
        unique, refers = (
            ("NOT NULL UNIQUE", f" REFERENCES p{self.number} (k)") if self.foreign else ("NULL", "")
        )
        foreign = f", FOREIGN KEY (k){refers}" if refers else ""
        columns = f"id int PRIMARY KEY, k {self.kind.declared}"
        return [
            f"CREATE TABLE p{self.number} ({columns} {unique}, n int)",
            f"CREATE TABLE c{self.number} ({columns} NULL, n int{foreign})",
        ]


def kinds_of(old: Database) -> list[Kind]:
    """The kinds that a server has, with what they need: one without ICU has few families of collations."""
    found = []
    for kind in KINDS[old.kind]:
        with suppress(psycopg.errors.FeatureNotSupported):
            old.execute(*kind.setup)
            found.append(kind)
    return found


def links_of(kinds: Sequence[Kind], dice: random.Random) -> list[Link]:
    """A link of each kind of columns, drawn in how it is declared."""
    found = []
    for number, one in enumerate(one for one in kinds if one.name not in NO_LINK):
        exact = one in EXACT or one.declared.endswith(("nopad_bin", "0900_bin"))
        foreign, way = exact or dice.random() < 0.5, "derived" if exact else "as it is"
        if one.groups is CASES and not exact and dice.random() < 0.5:
            way = "folded"
        found.append(Link(number, one, foreign, dice.choice("cp"), way))
    return found


@dataclass(frozen=True)
class Linked:
    """A project of such links, and what is drawn for them."""

    project: Project
    links: list[Link]
    dice: random.Random

    def rows(self, database: Database, table: str, more: str) -> list[Row]:
        rows = database.query(f"SELECT id, {SHOWN[database.kind].format('k')}, {more} FROM {table}")
        return [
            (row[0], None if row[1] is None else bytes(row[1]).decode(), *map(int, row[2:])) for row in rows
        ]

    def wanted(self, link: Link) -> set[Row]:
        sides = {one: self.rows(self.project.old, f"{one}{link.number}", "n") for one in "cp"}
        near, far = sides.pop(link.near), next(iter(sides.values()))
        fold = str.lower if link.way == "folded" else str
        found = set()
        for key, text, _ in near:
            of = [n for _, other, n in far if None not in (text, other) and fold(text) == fold(other)]
            found.add((key, None if text is None else link.kind.printed(text), len(of), sum(of)))
        return found

    def differing(self) -> set[str]:
        found = set()
        for link in self.links:
            actual = self.rows(self.project.new, f"t{link.number}", "many, total")
            printed = {(one[0], one[1] and link.kind.printed(one[1]), *one[2:]) for one in actual}
            if printed != self.wanted(link):
                found.add(f"t{link.number}")
        return found

    def joined_by_the_server_alone(self) -> set[str]:
        """Names of kinds by which the old server joins, now, what no link joins."""
        found = set()
        for link in self.links:
            shown = [SHOWN[self.project.old.kind].format(f"{one}.k") for one in "cp"]
            tables = f"c{link.number} c JOIN p{link.number} p ON c.k = p.k"
            if self.project.old.query(f"SELECT 1 FROM {tables} WHERE {shown[0]} <> {shown[1]} LIMIT 1"):
                found.add(link.kind.name)
        return found

    def do(self, steps: Sequence[tuple[str, int, int, int]]) -> int:
        """Drawn changes, on all links; tells how many the server took (a foreign key has its own mind)."""
        taken = 0
        with self.project.old.connect(autocommit=True) as connection, connection.cursor() as cursor:
            for link in self.links:
                spellings = link.spellings()
                for side, key, chosen, n in steps:
                    table = f"{side}{link.number}"
                    text = None if chosen < 0 and side == "c" else spellings[chosen % len(spellings)]
                    try:
                        if n < 0:
                            cursor.execute(f"DELETE FROM {table} WHERE id = %s", [key])
                        else:
                            cursor.execute(f"UPDATE {table} SET k = %s, n = %s WHERE id = %s", [text, n, key])
                        if n >= 0 and cursor.rowcount == 0:
                            cursor.execute(f"INSERT INTO {table} VALUES (%s, %s, %s)", [key, text, n])
                        taken += 1
                    except REFUSED:
                        continue
        return taken


STEPS = st.lists(
    st.tuples(st.sampled_from("ccp"), st.integers(0, 9), st.integers(-1, 40), st.integers(-1, 5)),
    min_size=6,
    max_size=12,
)


def begin(links: Sequence[Link], old: Database, dice: random.Random) -> None:
    """A parent of each value, and two children of it, each spelled as it comes."""
    with old.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for link in links:
            for place, group in enumerate(link.kind.groups):
                for side, keys in (("p", [place]), ("c", [2 * place, 2 * place + 1])):
                    for key in keys:
                        row = [key, dice.choice(group), key]
                        cursor.execute(f"INSERT INTO {side}{link.number} VALUES (%s, %s, %s)", row)


PARTS = {"old_pg": 3}
"""PostgreSQL has so many kinds of its own that a project of all of them takes a busy machine a quarter of an hour."""


@pytest.fixture(
    params=[(pair, part) for pair in PAIRS for part in range(PARTS.get(pair[0], 1))],
    ids=lambda drawn: f"{drawn[0][0]}-{drawn[1]}",
)
def linked(request: pytest.FixtureRequest, tmp_path: Path, spark: SparkSession) -> Linked:
    """A project of a part of the kinds."""
    pair, part = request.param
    old, new = (request.getfixturevalue(name) for name in pair)
    dice = random.Random(SEED)
    links = links_of(kinds_of(old), dice)[part :: PARTS.get(pair[0], 1)]
    mapping = [
        "from pyspark.sql import functions as F",
        "from transforms import Mapping",
        "mapping = Mapping()",
    ]
    for link in links:
        old.execute(*link.tables())
        if old.kind == "postgresql":
            old.execute(*(f"ALTER TABLE {one}{link.number} REPLICA IDENTITY FULL" for one in "cp"))
        columns = f"id int PRIMARY KEY, k {EXACT_TEXT[new.kind]}, many bigint NOT NULL, total bigint NOT NULL"
        new.execute(f"CREATE TABLE t{link.number} ({columns})")
        mapping.append(link.mapping())
    begin(links, old, dice)
    source = tmp_path / "source"
    (source / "alembic" / "versions").mkdir(parents=True)
    (source / "mapping.py").write_text("\n\n\n".join(mapping) + "\n")
    sides = scenario_database(old), scenario_database(new)
    config = make_project(tmp_path / "project", *sides, source, "linked", ("[spark]", 'master = "local[2]"'))
    return Linked(Project(old, new, config), links, dice)


def verdicts(project: Project) -> set[str]:
    """Tables that the judge's last report calls different."""
    report = json.loads((configuration.load(project.config).reports() / "verify.json").read_text())
    return {one["target"] for one in report["tables"] if one["verdict"] == "different"}


@pytest.mark.spark
@pytest.mark.slow
def test_linked_spellings_travel_are_judged_and_repaired(linked: Linked) -> None:
    project = linked.project
    wider = linked.joined_by_the_server_alone()
    enough = min(3, len(linked.links) // 3)
    assert len(wider) >= enough > 0, "the control: the server joins more than links do"
    project.run_here()
    assert linked.differing() == set()
    for steps in drawn(STEPS, 4)[1:]:  # the first one that is drawn is the plainest: nothing at all
        assert linked.do(steps) > len(linked.links)
        assert linked.differing(), "the control: there is something to stream"
        project.run_here()
        assert linked.differing() == set()
    assert project.command("verify", "--wait", "20") == 0
    tables = [f"t{link.number}" for link in linked.links if linked.wanted(link)]
    wrong = linked.dice.sample(tables, len(tables) // 2)
    for table in wrong:
        key = linked.dice.choice(sorted(project.new.query(f"SELECT id FROM {table}")))[0]
        damage = linked.dice.choice(
            ("DELETE FROM {0}", "UPDATE {0} SET total = total + 1", "UPDATE {0} SET k = 'no'")
        )
        project.new.execute(f"{damage.format(table)} WHERE id = {key}")
    assert linked.differing() == set(wrong), "the control: there is something to find, and something right"
    assert project.command("verify", "--wait", "10") == 1
    assert verdicts(project) == set(wrong)
    with running(project):
        assert project.command("repair", "--apply") == 0
    assert linked.differing() == set()
    assert project.command("verify", "--wait", "20") == 0


def refused(database: Database, number: int) -> bool:
    """Whether a mapping that joins by the foreign key of two tables has to declare its links."""
    if database.kind == "postgresql":
        postgres = PostgresCatalog(fix_postgres_source.source_of(database))
        schemas, references = postgres.tables(names := [f"c{number}", f"p{number}"]), None
        references = postgres.references(schemas)
    else:
        binlog = (MysqlCatalog if database.kind == "mysql" else MariaCatalog)(
            binlog_reading.source_of(database)
        )
        schemas = binlog.tables(names := [f"c{number}", f"p{number}"])
        references = binlog.references(schemas)
    assert references, "there is a foreign key"
    mapping, scope = Declared(), dict[str, Any]()
    exec(f"def made({', '.join(names)}): ...", scope)
    mapping.target("made", key="id", grain=f"c{number}.id")(scope["made"])
    by_name = {one.id.name: one for one in schemas}
    if all(
        compared_exactly(by_name[f"c{number}"].columns[1], by_name[f"p{number}"].columns[1])
        for _ in references
    ):
        reaches(mapping["made"], by_name, references)
        return False
    with pytest.raises(GrainProblem, match=rf"c{number}\.k"):
        reaches(mapping["made"], by_name, references)
    return True


@pytest.mark.parametrize("engine", ENGINES)
def test_a_foreign_key_is_a_link_only_where_it_takes_no_more_for_one(
    engine: str, request: pytest.FixtureRequest
) -> None:
    """Pairs are drawn: what the server's foreign key lets refer, though no byte-wise link would find it."""
    old: Database = request.getfixturevalue(engine)
    dice, wider, exact = random.Random(SEED), 0, 0
    for number, kind in enumerate(kinds_of(old)):
        link = Link(number, kind, True, "c", "derived")
        old.execute(*link.tables())
        begin([link], old, dice)
        begun = Linked(Project(old, old, Path()), [link], dice)
        more = bool(begun.joined_by_the_server_alone())
        assert refused(old, number) or not more, kind.name
        wider += more
        exact += not refused(old, number)
    assert wider > 2
    assert exact, "the control: some foreign keys are links"
