"""What ``check`` says of values that don't fit agrees with what the target does to them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from migrator.config import project as configuration
from migrator.errors import TargetError
from migrator.model.finding import Finding
from migrator.run.commands import fits
from migrator.run.commands.trial_map import TrialMap
from migrator.run.commands.trial_rows import TrialRows
from migrator.run.migration import plans
from migrator.run.parts import Parts
from migrator.wiring import parts as wiring
from scenarios.project import make_project
from tests.integration import shop, target_bench, target_bench_mysql
from tests.integration.commands import fit_columns
from tests.integration.commands.fit_columns import Pair
from tests.integration.run_project import scenario_database
from tests.servers import Database, fresh_database
from transforms.analysis.plan import MappingPlan

pytestmark = [pytest.mark.integration, pytest.mark.spark]

PAIRS = [("postgres", "mysql"), ("mariadb", "postgres")]
"""Each engine as a source and as a target: the conditions and the rules are of one engine each."""
COLUMNS, VALUES = 16, 3
MAPPING = """
from transforms import Mapping
mapping = Mapping()

@mapping.target("t", key="id")
def t(s):
    return s.select("id", {columns})
"""


def literal(old: Database, kind: str, value: str) -> str:
    """A value in the source's SQL."""
    if kind.startswith(("varbinary", "binary")):
        return f"x'{value}'"
    if old.kind != "postgresql" and value:
        return f"CONVERT(x'{value.encode().hex()}' USING utf8mb4)"
    return "'" + value.replace("'", "''") + "'"


@dataclass
class Lab:
    """Two databases, a plan of one table with many columns, and what the target did to each value."""

    old: Database
    new: Database
    parts: Parts
    plan: MappingPlan
    pairs: list[Pair]

    def fill(self, chosen: list[tuple[Pair, str]]) -> None:
        """One row for each value, NULL in all other columns, behind an empty row."""
        self.old.execute("DELETE FROM s", "INSERT INTO s (id) VALUES (0)")
        for number, (pair, value) in enumerate(chosen, 1):
            self.old.execute(
                f"INSERT INTO s (id, {pair.name}) VALUES ({number}, {literal(self.old, pair.given, value)})"
            )

    def said(self, seconds: float = 60) -> list[Finding]:
        table = self.parts.target.tables(["t"])[0]
        return list(fits.unfit(self.parts, self.plan, table, seconds))

    def mapped(self, keys: list[int]) -> Any:
        """What source rows are mapped to; None where Spark refuses one."""
        reader = self.parts.source(list(self.plan.schemas.values())).chunk_reader()
        try:
            rows = TrialRows(self.parts.spark(), reader, self.plan)
            found = rows.of_keys("s", [(str(key),) for key in keys])
            return TrialMap(self.parts.spark(), self.plan, rows).mapped({"s": found})
        except (PySparkException, Py4JError):
            return None
        finally:
            reader.close()

    def does(self, bench: Any, keys: list[int], column: str) -> list[bool]:
        """Whether a run would stop at each row, by the very batches that it would apply."""
        rows = self.mapped(keys)
        if rows is None:
            return [True] if len(keys) == 1 else [self.does(bench, [key], column)[0] for key in keys]
        return [
            self.stops(bench, rows.filter(pc.equal(rows["id"], key)).select(["id", column])) for key in keys
        ]

    def stops(self, bench: Any, row: Any) -> bool:
        try:
            bench.apply(bench.part("t", row), done=False)
        except TargetError:
            return True
        return False


def _some(values: tuple[str, ...], seed: int) -> list[str]:
    return random.Random(seed).sample(values, min(VALUES, len(values)))


def made(folder: Path, old: Database, new: Database) -> Lab:
    """Pairs that a mapping may have, in one table on each side."""
    postgres_old, postgres_new = old.kind == "postgresql", new.kind == "postgresql"
    given = fit_columns.POSTGRES_SOURCE if postgres_old else fit_columns.BINLOG_SOURCE
    wanted = fit_columns.POSTGRES_TARGET if postgres_new else fit_columns.BINLOG_TARGET
    for database, postgres in ((old, postgres_old), (new, postgres_new)):
        database.execute(*fit_columns.SETUP if postgres else ())
    kinds = dict(enumerate(given))
    old.execute(f"CREATE TABLE s (id int PRIMARY KEY, {', '.join(f'c{n} {k}' for n, k in kinds.items())})")
    new.execute(
        f"CREATE TABLE t (id int PRIMARY KEY, {', '.join(f'c{n} {k}' for n, k in enumerate(wanted))})"
    )
    config = make_project(folder, scenario_database(old), scenario_database(new), shop.HERE, "fits")
    (config.parent / "mapping.py").write_text(MAPPING.format(columns='"c0"'))
    parts = wiring.parts(configuration.load(config), "local[2]")
    parts.spark()
    schema, target = parts.catalog.tables(["s"])[0], parts.target.tables(["t"])[0]
    types = {column.name: column.spark_type for column in target.columns if column.name != "id"}
    found = fit_columns.compatible(schema, types)
    found = [pair for pair in found if pair[0] != "id"]
    pairs = []
    for number, (source, column) in enumerate(fit_columns.chosen(found, COLUMNS, len(found))):
        kind = kinds[int(source[1:])]
        pairs.append(Pair(f"c{number}", kind, wanted[int(column[1:])], tuple(_some(given[kind], number))))
    parts.target.close()
    old.execute(
        "DROP TABLE s",
        f"CREATE TABLE s (id int PRIMARY KEY, {', '.join(f'{p.name} {p.given} NULL' for p in pairs)})",
    )
    new.execute(
        "DROP TABLE t",
        f"CREATE TABLE t (id int PRIMARY KEY, {', '.join(f'{p.name} {p.wanted}' for p in pairs)})",
    )
    (config.parent / "mapping.py").write_text(MAPPING.format(columns=", ".join(f'"{p.name}"' for p in pairs)))
    parts = wiring.parts(configuration.load(config), "local[2]")
    return Lab(old, new, parts, plans(parts)[2]["t"], pairs)


@pytest.fixture(scope="module", params=PAIRS, ids=lambda pair: f"{pair[0]} to {pair[1]}")
def lab(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession
) -> Iterator[tuple[Lab, Any]]:
    with ExitStack() as stack:
        old, new = (
            stack.enter_context(fresh_database(request.getfixturevalue(server), side))
            for server, side in zip(request.param, ("old", "new"), strict=True)
        )
        found = made(tmp_path_factory.mktemp("fits") / "project", old, new)
        bench = target_bench if new.kind == "postgresql" else target_bench_mysql
        yield found, stack.enter_context(bench.bench(new))


def named(findings: list[Finding]) -> set[str]:
    """Columns that findings are about."""
    return {finding.subject.rpartition(".")[2] for finding in findings}


@pytest.mark.slow
def test_what_is_said_is_what_the_target_does(lab: tuple[Lab, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """The source is asked: the sample is one empty row."""
    here, bench = lab
    monkeypatch.setattr(fits, "_ROWS", 1)
    every = [(pair, value) for pair in here.pairs for value in pair.values]
    here.fill(every)
    refused: dict[tuple[str, str], bool] = {}
    for pair in here.pairs:
        keys = [key for key, (one, _) in enumerate(every, 1) if one is pair]
        answers = here.does(bench, keys, pair.name)
        refused |= {(pair.name, value): answer for value, answer in zip(pair.values, answers, strict=True)}
    assert 10 < sum(refused.values()) < len(every) - 10
    right = [one for one in every if not refused[one[0].name, one[1]]]
    for chosen in (every, right):
        here.fill(chosen)
        findings = here.said()
        wrong = {pair.name for pair, value in chosen if refused[pair.name, value]}
        kinds = {pair.name: f"{pair.name}: {pair.given} to {pair.wanted}" for pair in here.pairs}
        assert {kinds[name] for name in named(findings)} == {kinds[name] for name in wrong}, findings
        assert all(finding.fatal and "id=" in finding.problem for finding in findings)
