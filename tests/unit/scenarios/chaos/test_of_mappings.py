"""Broken variants of mappings: each kind of fault is put in its place, and a table says who noticed."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.errors import ConfigError
from scenarios.mutants.mapping_commands import mutate_mapping
from scenarios.mutants.of_mappings import mapping_mutants

MAPPING = '''
@mapping.target("sale", key=("id", "day"), grain=["orders.id", "orders.day"])
def sale(orders, line):
    """Sales."""
    sums = line.groupBy("id", "day").agg(F.sum("cents").alias("cents"))
    joined = orders.where(F.col("state") == "paid").join(sums, ["id", "day"], "left")
    return joined.select("id", "day", F.col("a").alias("first"), F.col("b").alias("second"), "cents")


@mapping.target("pair", key="id")
def pair(one, other):
    return one.join(other, (one.id == other.id) & (one.kind == other.kind)).select(one.id, "kind")


def helper(frame):
    return frame.where("x = 1")
'''


def test_each_kind_of_fault_has_its_variant() -> None:
    found = mapping_mutants(MAPPING)
    faults = {(one.target, one.fault) for one in found}
    assert faults == {
        ("sale", "the filter F.col('state') == 'paid' is dropped"),
        ("sale", "the join lacks 'id'"),
        ("sale", "the join lacks 'day'"),
        ("sale", "'id' is not grouped by"),
        ("sale", "'day' is not grouped by"),
        ("sale", "the grain lacks 'orders.id'"),
        ("sale", "the grain lacks 'orders.day'"),
        ("sale", "the column first is dropped"),
        ("sale", "the column second is dropped"),
        ("sale", "the column cents is dropped"),
        ("sale", "the columns first and second are swapped"),
        ("pair", "the join lacks one.id == other.id"),
        ("pair", "the join lacks one.kind == other.kind"),
        ("pair", "the column kind is dropped"),
    }
    assert len({one.source for one in found}) == len(found)
    plain = ast.unparse(ast.parse(MAPPING)) + "\n"
    assert plain not in {one.source for one in found}


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("the filter F.col('state') == 'paid' is dropped", "orders.select('*').join(sums"),
        ("the join lacks 'day'", "join(sums, ['id'], 'left')"),
        ("the join lacks one.id == other.id", "one.join(other, one.kind == other.kind)"),
        ("the grain lacks 'orders.id'", "grain=['orders.day']"),
        ("'day' is not grouped by", "groupBy('id')"),
        ("the columns first and second are swapped", "F.col('a').alias('second'), F.col('b').alias('first')"),
        ("the column second is dropped", "F.col('a').alias('first'), 'cents')"),
    ],
)
def test_a_fault_is_where_it_is_said_to_be(fault: str, text: str) -> None:
    [one] = [one for one in mapping_mutants(MAPPING) if one.fault == fault]
    assert text in one.source


def project(folder: Path, test: str) -> Path:
    (folder / "migration.toml").write_text('[migration]\nname = "m"\n')
    (folder / "mapping.py").write_text(
        "class mapping:\n    @staticmethod\n    def target(*_, **__):\n        return lambda f: f\n\n\n"
        '@mapping.target("t", key="id")\ndef t(rows):\n    return rows.where(1).select("id", "a")\n'
    )
    (folder / "test_mapping.py").write_text(test)
    return folder / "migration.toml"


SEES_FILTERS = "def test_it():\n    assert '.where(' in open('mapping.py').read()\n"


def test_the_table_names_what_survived(tmp_path: Path) -> None:
    config = project(tmp_path, SEES_FILTERS)
    done = CliRunner().invoke(mutate_mapping, ["--config", str(config)], standalone_mode=False)
    assert "noticed   t, line 9: the filter 1 is dropped" in done.output, done.output
    assert "SURVIVED  t, line 9: the column a is dropped" in done.output
    assert "1 of 2 broken mappings were noticed" in done.output
    assert done.return_value == 1
    assert "where(1)" in (tmp_path / "mapping.py").read_text(), "the project itself was changed"


@pytest.mark.parametrize("words", [["--minutes", "1e-9"], ["--most", "1"]])
def test_what_a_limit_leaves_is_named_and_unknown(tmp_path: Path, words: list[str]) -> None:
    """Without a limit the same judge notices everything, and the exit code is 0."""
    config = project(tmp_path, "")
    judge = ["--judge", f"cmp -s mapping.py {tmp_path / 'mapping.py'}"]
    command = ["--config", str(config), "--json", *judge]
    done = CliRunner().invoke(mutate_mapping, [*command, *words], standalone_mode=False)
    found = json.loads(done.stdout)
    assert done.return_value == 3
    assert len(found["mutants"]) == (1 if "--most" in words else 0)
    assert len(found["mutants"]) + len(found["not_tried"]) == 2
    for one in found["not_tried"]:
        assert f"unknown   t, line 9: {one['fault']}  not tried" in done.stderr
    whole = CliRunner().invoke(mutate_mapping, command, standalone_mode=False)
    assert (whole.return_value, json.loads(whole.stdout)["not_tried"]) == (0, [])


def test_the_table_as_json_has_each_judge(tmp_path: Path) -> None:
    config = project(tmp_path, SEES_FILTERS)
    both = ["--judge", "grep -qF .where( mapping.py", "--judge", "grep -q '\"a\"' mapping.py"]
    done = CliRunner().invoke(
        mutate_mapping, ["--config", str(config), "--json", *both], standalone_mode=False
    )
    rows = json.loads(done.stdout)["mutants"]
    assert [len(row["noticed_by"]) for row in rows] in ([1, 2], [2, 1])


def test_a_judge_that_refuses_the_right_mapping_is_named(tmp_path: Path) -> None:
    config = project(tmp_path, "def test_it():\n    assert False\n")
    done = CliRunner().invoke(mutate_mapping, ["--config", str(config)], standalone_mode=False)
    assert isinstance(done.exception, ConfigError)
    assert "refuses the mapping as it is" in str(done.exception)
