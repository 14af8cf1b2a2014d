"""Tries on a sample of the source whether rows of a joined target depend on one grain each, as its mapping
declares.

A dump maps all rows at once, a batch those of the grains that it touches. Both come to the same only if no
target row depends on rows of two grains. So some grains, with all rows linked to them, are mapped together
and in halves, three times in other halves: a row that comes out otherwise depends on grains of both.

The rows are read once, and the halves taken from them here: a source that is being written tells nothing wrong of a
grain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b

import pyarrow as pa
import pyarrow.compute as pc
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from migrator.errors import SourceError
from migrator.model.reach import Node, Reach, entangled
from migrator.run.commands.trial_map import Tables, TrialMap, united, without
from migrator.run.commands.trial_rows import TrialRows, tuples
from migrator.run.parts import Parts
from transforms.analysis.grain_numbers import NUMBER
from transforms.analysis.plan import MappingPlan
from transforms.cause import spark_cause
from transforms.on_spark.session import named_jvm_end

REMEDY = (
    "declare a coarser grain, so that all rows which a target row depends on belong to one, and link what the"
    ' function joins or groups by; if values in several tables are one grain, write so: grain="a.x = b.x"'
    " (docs/how-to/mapping/joined-mappings.md, docs/how-to/mapping/grains.md)"
)
HALVINGS = 3
_MOST_COLUMNS = 3
_Row = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of trying the grains of one target.

    Attributes:
        grains: how many were tried.
        wrong: the target row that depends on several grains, and how; empty if none was found.
        untried: why none could be tried; empty if they were.
        rows: the target rows of the grains tried; None of none.
    """

    grains: int
    wrong: str = ""
    untried: str = ""
    rows: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class Grains:
    """Some grains of one reach: rows by node, and of each row that has a value of the grain that one's number."""

    reach: Reach
    rows: Sequence[pa.Table]
    numbers: Mapping[int, Sequence[int]]

    def count(self) -> int:
        """Returns the number of different grains."""
        return len({number for numbers in self.numbers.values() for number in numbers})

    def part(self, chosen: Callable[[int], bool]) -> list[pa.Table]:
        """The rows of some of the grains, by node."""
        found: list[pa.Table] = []
        for index, (node, rows) in enumerate(zip(self.reach.nodes, self.rows, strict=True)):
            if node.above is None:
                found.append(_kept(rows, [chosen(number) for number in self.numbers[index]]))
                continue
            above = set(tuples(found[node.above], node.above_columns))
            linked = [one in above and None not in one for one in tuples(rows, node.columns)]
            found.append(_kept(rows, linked))
        return found


def prove(parts: Parts, plan: MappingPlan, rows: int) -> Verdict:
    """Tries the grains of a joined target.

    Args:
        parts: only structure of the source, chunk reader and Spark are used.
        plan: of the target.
        rows: of the first rows of each grain's table the grains are taken, at most so many.

    Raises ``ConnectionFailed``, ``SourceError`` where the source can't be read.
    """
    reader = parts.source(list(plan.schemas.values())).chunk_reader()
    try:
        trial_rows = TrialRows(parts.spark(), reader, plan)
        mapping = TrialMap(parts.spark(), plan, trial_rows)
        samples: list[Grains] = []
        for reach in plan.reaches:
            firsts = {
                root: trial_rows.first(reach.nodes[root].schema.id.name, rows) for root in reach.roots()
            }
            samples.append(grains_of(mapping, reach, firsts, sum(one.count() for one in samples)))
        grains = sum(one.count() for one in samples)
        if not grains:
            return Verdict(0)
        with named_jvm_end():
            together = mapped_grains(mapping, samples, lambda _: True)
            wrong = _difference(mapping, samples, together) if grains > 1 else ""
            return Verdict(grains, wrong, rows=together)
    except SourceError as error:
        if error.retryable:
            raise
        return Verdict(0, untried=f"{error.what}: {error.cause}")
    except (PySparkException, Py4JError) as error:
        return Verdict(0, untried=f"the mapping fails on rows of the sample: {spark_cause(error)}")
    finally:
        reader.close()


def grains_of(mapping: TrialMap, reach: Reach, firsts: Mapping[int, pa.Table], before: int = 0) -> Grains:
    """Whole grains, with all rows linked to them.

    Args:
        mapping: of the target.
        reach: of the grains.
        firsts: rows of tables that have the grain, by the node's index; of these the grains are.
        before: how many grains have a number already.
    """
    own = _roots(mapping, reach, firsts)
    values = {index: tuples(rows, columns) for index, (rows, columns) in own.items()}
    every = dict.fromkeys(value for found in values.values() for value in found)
    known = {value: before + number for number, value in enumerate(every)}
    rows: list[pa.Table] = []
    for index, node in enumerate(reach.nodes):
        if node.above is None:
            rows.append(own[index][0].drop_columns([NUMBER] if own[index][1] == [NUMBER] else []))
            continue
        above = rows[node.above].select(list(node.above_columns))
        rows.append(mapping.source.linked(node.schema.id.name, node.columns, above))
    numbers = {index: [known[value] for value in found] for index, found in values.items()}
    return Grains(reach, rows, numbers)


def _roots(
    mapping: TrialMap, reach: Reach, firsts: Mapping[int, pa.Table]
) -> dict[int, tuple[pa.Table, list[str]]]:
    """Returns, by node that has the grain, all rows of the grains of its table's rows in ``firsts``, and the grain's
    columns."""
    source, columns = mapping.source, list(reach.grain)
    if columns:
        wanted = pa.concat_tables(
            [rows.select(reach.grain_of(index)).rename_columns(columns) for index, rows in firsts.items()],
            promote_options="permissive",
        )
        return {
            index: (
                source.linked(reach.nodes[index].schema.id.name, reach.grain_of(index), wanted),
                list(reach.grain_of(index)),
            )
            for index in reach.roots()
        }
    whole, columns = mapping.numbered(reach, source.whole(reach.root.schema.id.name)), [NUMBER]
    numbers = mapping.numbered(reach, firsts[0])[NUMBER]
    own = whole.filter(pc.is_in(whole[NUMBER], numbers.combine_chunks())).filter(pc.field(NUMBER).is_valid())
    return {0: (own, columns)}


def _difference(mapping: TrialMap, samples: Sequence[Grains], together: pa.Table) -> str:
    """The first target row that comes out otherwise in halves; empty if none does."""
    names, key = together.column_names, mapping.plan.target.key
    for halving in range(HALVINGS):
        left, right = (mapped_grains(mapping, samples, partial(on_side, halving, side)) for side in (0, 1))
        whole, apart = Counter(_rows(together)), Counter([*_rows(left), *_rows(right)])
        for row in [*(whole - apart), *(apart - whole)]:
            return _differing_row(names, key, row, whole, apart)
    return ""


def on_side(halving: int, side: int, number: int) -> bool:
    """Tells whether a halving puts a grain on a side: the first parts neighbours, the others part by chance.

    Not by bits of a checksum, in which numbers at the same distance differ alike: grains of two tables that are one
    may all stand so.
    """
    drawn = blake2b(f"{halving} {number}".encode(), digest_size=1).digest()[0]
    return ((number if halving == 0 else drawn) & 1) == side


def mapped_grains(mapping: TrialMap, samples: Sequence[Grains], chosen: Callable[[int], bool]) -> pa.Table:
    """The target rows of some grains, without what rows make that stand for other grains too, by half."""
    every: dict[str, pa.Table] = {}
    own: dict[str, pa.Table] = {}
    for sample in samples:
        for node, rows in zip(sample.reach.nodes, sample.part(chosen), strict=True):
            name, key = _name_and_key(node)
            every[name] = united(every.get(name), rows, key)
            if node.above is None:
                own[name] = united(own.get(name), rows, key)
    new = mapping.mapped(every)
    if not entangled(mapping.plan.reaches):
        return new
    keys = dict(_name_and_key(node) for reach in mapping.plan.reaches for node in reach.nodes)
    rest: Tables = {
        name: without(rows, own[name], keys[name]) if name in own else rows for name, rows in every.items()
    }
    return without(new, mapping.mapped(rest), list(mapping.plan.target.key))


def _name_and_key(node: Node) -> tuple[str, list[str]]:
    return node.schema.id.name, list(node.schema.key)


def _kept(rows: pa.Table, wanted: Sequence[bool]) -> pa.Table:
    return rows.filter(pa.array(wanted, pa.bool_()))


def _rows(table: pa.Table) -> Iterator[_Row]:
    for row in table.to_pylist():
        yield tuple(_comparable(value) for value in row.values())


def _comparable(value: object) -> object:
    """Sums of floats depend on the order of the rows in their last digits."""
    if isinstance(value, float):
        return float(f"{value:.9g}")
    return repr(value) if isinstance(value, list | dict) else value


def _differing_row(
    names: Sequence[str], key: Sequence[str], row: _Row, whole: Counter[_Row], apart: Counter[_Row]
) -> str:
    """Describes how the rows of one key differ."""
    places = [names.index(name) for name in key]
    value = [row[place] for place in places]
    mine, halves = (
        [one for one in found.elements() if [one[place] for place in places] == value]
        for found in (whole, apart)
    )
    named = f"{', '.join(key)} = {', '.join(map(str, value))}"
    if len(mine) != 1 or len(halves) != 1:
        return f"{named}: the grains together make {len(mine)} row(s) of it, each for itself {len(halves)}"
    others = [
        f"{name} = {a} of the grains together, {b} of each for itself"
        for name, a, b in zip(names, mine[0], halves[0], strict=True)
        if a != b
    ]
    return f"{named}: {'; '.join(others[:_MOST_COLUMNS])}"
