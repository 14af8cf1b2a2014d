"""Row changes that come as canonical text: for sources that hand out rows rather than encoded log records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from migrator.columnar.text import rows_to_table
from migrator.model.event import ChangeRun, Images, Key, Row, RowChange
from migrator.model.table import TableId, TableSchema


@dataclass(frozen=True, slots=True)
class TextCodec:
    """A ``ChangeCodec`` whose items are ``RowChange``s."""

    schema: TableSchema
    _key: tuple[int, ...] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_key", self.schema.key_indexes())

    def changes(self, items: Sequence[RowChange]) -> list[RowChange]:
        """See ``ChangeCodec``."""
        return list(items)

    def keys(self, items: Sequence[RowChange]) -> list[tuple[Key, ...]]:
        """See ``ChangeCodec``."""
        places = self._key
        return [
            tuple([tuple([image[place] for place in places]) for image in _images(change)])
            for change in items
        ]

    def images(self, items: Sequence[RowChange]) -> Images:
        """See ``ChangeCodec``."""
        places: list[int] = []
        signs: list[int] = []
        rows: list[Row] = []
        for place, change in enumerate(items):
            for sign, image in ((-1, change.before), (1, change.after)):
                if image is not None:
                    places.append(place)
                    signs.append(sign)
                    rows.append(image)
        table = rows_to_table(self.schema, rows)
        return Images(np.array(places, dtype=np.int64), np.array(signs, dtype=np.int8), table)


def text_runs(codecs: Mapping[TableId, TextCodec], changes: Iterable[RowChange]) -> tuple[ChangeRun, ...]:
    """Changes in log order as runs. Raises ``KeyError`` for a table without a codec."""
    runs = []
    for table, group in groupby(changes, key=lambda change: change.table):
        items = list(group)
        runs.append(ChangeRun(codecs[table], items, sum(map(_bytes, items))))
    return tuple(runs)


def _images(change: RowChange) -> list[Row]:
    return [image for image in (change.before, change.after) if image is not None]


def _bytes(change: RowChange) -> int:
    return sum(len(value) for image in _images(change) for value in image if value is not None)
