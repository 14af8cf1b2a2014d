"""The two sides of new tables at a place in the log: the mapping on replayed old rows, by the verifier's readers.

Nothing of the pipeline takes part: old rows are read with plain SELECTs from the replayed copy, the mapping's
functions are called on whole tables, and both sides become the verifier's canonical texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq

from scenarios.chaos.shadow import Shadow
from scenarios.chaos.snapshots import Seen
from scenarios.chaos.states import TableState, Texts
from transforms import nexts
from transforms.load import load_mapping
from transforms.on_spark.session import small_session
from transforms.registry import TargetMapping
from verify.readers.engines import source_reader
from verify.readers.snapshot import SourceSnapshot, TargetRowsText
from verify.settings import ServerSettings
from verify.tables.compare.key_maps import KeyMapReader, numbered
from verify.tables.compare.mapped_side import canonical_sides


@dataclass(frozen=True, slots=True)
class _Rows:
    columns: tuple[str, ...]
    key: tuple[int, ...]
    rows: tuple[Texts, ...]


class Mapped:
    """The mapping as the judge applies it.

    Args:
        mapping: the user's file.
        source, target: both sides, reached directly.
        migration: its name.
        scratch: a folder for rows.
    """

    def __init__(
        self,
        mapping: Path,
        source: ServerSettings,
        target: ServerSettings,
        migration: str,
        scratch: Path,
    ):
        spark = small_session()
        found, maps = load_mapping(mapping, lambda: spark), KeyMapReader(target, migration)
        in_force = nexts.in_force(found, frozenset()) if found.nexts else found
        self.targets: Sequence[TargetMapping] = [numbered(one, maps.entries) for one in in_force.targets]
        self._source, self._migration = source, migration
        self._spark, self._scratch = spark, scratch
        self._expected: dict[tuple[object, ...], _Rows] = {}
        self._found: dict[tuple[object, ...], _Rows] = {}
        self._reads = 0

    def at(self, seen: Seen, shadow: Shadow) -> list[TableState]:
        """Reads both sides of a snapshot, the old rows as they were at its place in the log."""
        shadow.upto(seen.ledger.order)
        server = replace(self._source.server, database=shadow.database.database)
        old: list[SourceSnapshot] = []

        def rows() -> SourceSnapshot:
            if not old:
                old.append(self._old(replace(self._source, server=server)))
            return old[0]

        states = []
        for target in self.targets:
            version = (target.name, *(shadow.changed[name] for name in target.sources))
            if version not in self._expected:
                self._expected[version] = self._mapped(target, rows(), seen.snapshot.tables[target.name])
            states.append(self._state(target, self._expected[version], rows, seen))
        return states

    def ended(self, seen: Seen) -> list[TableState]:
        """Reads both sides of a snapshot, the old rows as they are now."""
        old = self._old(self._source)
        return [
            self._state(
                target, self._mapped(target, old, seen.snapshot.tables[target.name]), lambda: old, seen
            )
            for target in self.targets
        ]

    def _old(self, settings: ServerSettings) -> SourceSnapshot:
        self._reads += 1
        folder = self._scratch / f"old-{self._reads}"
        folder.mkdir(parents=True)
        names = dict.fromkeys(name for target in self.targets for name in target.sources)
        return source_reader(settings, self._migration).snapshot(list(names), folder)

    def _mapped(self, target: TargetMapping, old: SourceSnapshot, rows: TargetRowsText) -> _Rows:
        sides, _ = canonical_sides(self._spark, target, old, rows)
        shape = sides.shape
        key = tuple(shape.columns.index(name) for name in shape.key)
        return _Rows(shape.columns, key, _texts(sides.mapped.toArrow().to_pydict(), shape.columns))

    def _state(self, target: TargetMapping, expected: _Rows, old: object, seen: Seen) -> TableState:
        rows = seen.snapshot.tables[target.name]
        content = pq.read_table(rows.path).to_pydict()
        place = (target.name, *(tuple(values) for values in content.values()))
        if place not in self._found:
            assert callable(old)
            sides, _ = canonical_sides(self._spark, target, old(), rows)
            self._found[place] = _Rows(
                expected.columns,
                expected.key,
                _texts(sides.target.toArrow().to_pydict(), expected.columns),
            )
        found = self._found[place]
        return TableState(target.name, expected.columns, expected.key, expected.rows, found.rows)


def _texts(content: Mapping[str, Sequence[str | None]], columns: Sequence[str]) -> tuple[Texts, ...]:
    return tuple(zip(*(content[name] for name in columns), strict=True))
