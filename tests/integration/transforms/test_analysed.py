"""All problems of a mapping at once: each broken function is named, none hides another, none is invented."""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from migrator.errors import MappingError, MappingErrors, MigratorError, SourceError, TargetError
from migrator.model.table import Column, TableId, TableSchema
from migrator.model.target import TargetColumn, TargetTable
from migrator.run.analysed import Looked, look
from transforms.load import load_mapping, read_mapping

pytestmark = pytest.mark.spark

HEAD = """
from pyspark.sql import functions as F
from transforms import Mapping
from transforms.gaps import gap

mapping = Mapping()
"""


@dataclass(frozen=True)
class Kind:
    """One kind of broken function: its text with ``NAME`` for its target, and what must be said of it."""

    text: str
    says: str


def of(body: str, head: str = 'key="id"', parameters: str = "old") -> str:
    """A function of target NAME."""
    return f'@mapping.target("NAME", {head})\ndef NAME({parameters}):\n    {body}\n'


GOOD = of('return old.select("id", "word")')
KINDS = {
    "no key": Kind(of("return old", "key=()"), "the key names no column"),
    "a parameter with a default": Kind(of("return old", parameters="old=None"), "can't be read as source"),
    "no parameter": Kind(of("return None", parameters=""), "can't be read as source tables"),
    "too many sources": Kind(of("return old", 'key="id", sources=["a", "b"]'), "sources= must name one"),
    "links without a grain": Kind(of("return old", 'key="id", links=["a.b = c.d"]'), "links= can't be used"),
    "no surrogates": Kind(of("return old", 'key="id", surrogates={}'), "surrogates= can't be used"),
    "a coroutine": Kind(of("return old").replace("def ", "async def "), "only a plain function"),
    "an unknown column": Kind(of('return old.select("id", "wrod")'), "unknown column 'wrod'"),
    "an exception": Kind(of("return old.select(1 / 0)"), "fails when called"),
    "no DataFrame": Kind(of('old.select("id")'), "returns no DataFrame"),
    "a column too many": Kind(of('return old.select("id", F.col("word").alias("w"))'), "produces column 'w'"),
    "no key column": Kind(of('return old.select("word")'), "does not produce the key column 'id'"),
    "another key": Kind(of('return old.select("id", "word")', 'key="word"'), "has another key"),
    "a wrong type": Kind(of('return old.select(F.col("word").alias("id"))'), "a type that would change"),
    "a gap": Kind(of('return old.select("id", gap("NAME", "word", "?"))'), "'word' is a gap"),
    "a sum without a grain": Kind(
        of('return old.groupBy("id").agg(F.max("word").alias("word"))'), "neither row-wise nor"
    ),
    "a random value": Kind(of('return old.select("id", F.uuid().alias("word"))'), "other values each time"),
    "a job": Kind(
        of('n = old.count(); return old.select("id", F.lit(str(n)).alias("word"))'), "runs queries"
    ),
}


class Catalog:
    """The source: one table ``old``."""

    def tables(self, names: Sequence[str]) -> list[TableSchema]:
        if list(names) != ["old"]:
            raise SourceError(f"no such table: {', '.join(names)}")
        columns = (Column("id", "int64", False, "bigint"), Column("word", "string", True, "text"))
        return [TableSchema(TableId("s", "old"), columns, ("id",))]

    def references(self, schemas: Sequence[TableSchema]) -> list[Any]:
        return []


class Target:
    """The target: every table ``t<n>``, with the columns of ``old``."""

    def tables(self, names: Sequence[str]) -> list[TargetTable]:
        if any(not re.fullmatch(r"t\d+", name) for name in names):
            raise TargetError(f"no such table: {', '.join(names)}")
        columns = (
            TargetColumn("id", "bigint", "bigint", nullable=False, has_default=False, generated=False),
            TargetColumn("word", "string", "text", nullable=True, has_default=False, generated=False),
        )
        return [TargetTable(TableId("s", name), columns, ("id",)) for name in names]


def looked(spark: SparkSession, file: Path) -> Looked:
    mapping = read_mapping(file, lambda: spark)
    return look(lambda: spark, mapping, cast("Any", Catalog()), cast("Any", Target()))


def written(folder: Path, texts: Sequence[str]) -> Path:
    file = folder / "mapping.py"
    file.write_text(HEAD + "\n".join(text.replace("NAME", f"t{n}") for n, text in enumerate(texts)))
    return file


@pytest.mark.parametrize("seed", range(4))
def test_every_broken_function_is_named_in_the_order_of_the_file_and_no_other(
    tmp_path: Path, spark: SparkSession, seed: int
) -> None:
    choice = random.Random(seed)
    kinds: list[Kind | None] = [*KINDS.values(), *[None] * 6]
    choice.shuffle(kinds)
    kinds = kinds[: 8 + 6 * seed]
    file = written(tmp_path, [GOOD if kind is None else kind.text for kind in kinds])
    found = looked(spark, file).analysed

    broken = [(f"t{n}", kind) for n, kind in enumerate(kinds) if kind is not None]
    told = [(re.search(r"function (t\d+)", one.where), one) for one in found.problems]
    assert [match[1] for match, _ in told if match] == [name for name, _ in broken]
    lines = file.read_text().splitlines()
    for (match, problem), (name, kind) in zip(told, broken, strict=True):
        assert match is not None
        assert match[1] == name
        assert kind.says in problem.what
        assert problem.remedy
        number = int(re.findall(r":(\d+),", problem.where)[0])
        assert f'"{name}"' in lines[number - 1]
    assert list(found.plans) == [f"t{n}" for n, kind in enumerate(kinds) if kind is None]
    assert not found.untried


def test_what_a_run_raises_says_all_that_can_be_told_without_a_server(tmp_path: Path) -> None:
    file = written(tmp_path, [KINDS["no key"].text, GOOD, KINDS["no parameter"].text])
    with pytest.raises(MappingErrors) as failure:
        load_mapping(file)
    lines = failure.value.lines()
    assert lines[0] == "the mapping has 2 problems"
    assert lines[1].startswith("(1) the key names no column")
    assert [line for line in lines if "function t0" in line] == [f"    where: {file}:7, function t0"]
    assert [line for line in lines if "function t2" in line] == [f"    where: {file}:15, function t2"]


def test_one_problem_alone_is_that_error_itself(tmp_path: Path) -> None:
    with pytest.raises(MappingError, match="the key names no column") as failure:
        load_mapping(written(tmp_path, [KINDS["no key"].text, GOOD]))
    assert not isinstance(failure.value, MappingErrors)


def test_a_file_that_ends_early_hides_neither_what_stands_above_nor_the_queries_beside(
    tmp_path: Path, spark: SparkSession
) -> None:
    file = written(tmp_path, [KINDS["no key"].text, KINDS["an unknown column"].text, GOOD])
    file.write_text(file.read_text() + "\nnothing_of_this_name\n" + KINDS["no key"].text)
    (tmp_path / "a.sql").write_text(
        "-- target: q1\n-- keys: id\nSELECT id FROM old;\n"
        "-- target: t7\n-- key: id\nSELECT id, word FROM old;\n"
        "-- target: q2\nSELECT id FROM old;\n"
        "-- target: q3\n-- key: id\nSELEKT id FROM old;\n"
    )
    (tmp_path / "b.sql").write_text("-- key: id\n-- target: t8\n-- key: id\nSELECT id, word FROM old;\n")
    found = looked(spark, file).analysed
    assert [one.what.partition("; ")[0] for one in found.problems] == [
        "the key names no column, or one column twice",
        "the mapping of target table 't1' refers to the unknown column 'wrod'",
        "mapping.py fails while it is loaded",
        "a.sql: the head has no entry 'keys'",
        "a.sql: the head has no key",
        found.problems[5].what,
        "b.sql: `-- key:` comes before `-- target:`",
    ]
    assert "a.sql:11" in found.problems[5].where
    assert list(found.plans) == ["t2", "t7", "t8"]


def test_a_table_that_cant_be_read_hides_no_other_function(tmp_path: Path, spark: SparkSession) -> None:
    missing = of("return old", parameters="nowhere")
    elsewhere = GOOD.replace("NAME", "other")
    file = written(tmp_path, [missing, KINDS["a gap"].text, elsewhere, GOOD, KINDS["no DataFrame"].text])
    found = looked(spark, file)
    assert found.analysed.untried == {"t0": ["nowhere"], "other": ["other"]}
    assert set(found.refused) == {"nowhere", "other"}
    assert all(isinstance(one, MigratorError) for one in found.refused.values())
    assert [one.where.rpartition(" ")[2] for one in found.analysed.problems] == ["t1", "t4"]
    assert list(found.analysed.plans) == ["t3"]


def test_nothing_is_wrong_with_good_functions(tmp_path: Path, spark: SparkSession) -> None:
    found = looked(spark, written(tmp_path, [GOOD] * 3)).analysed
    assert found.problems == ()
    assert list(found.plans) == ["t0", "t1", "t2"]
