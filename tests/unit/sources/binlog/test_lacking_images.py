"""Row images that lack columns: read where nobody wants those, and refused by name where somebody does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.adapters.sources.binlog.events import events
from migrator.adapters.sources.binlog.events.events import Event
from migrator.adapters.sources.binlog.tables.captured_tables import LoggedTable, logged_table
from migrator.adapters.sources.binlog.tables.row_events import changes_of, items_of
from migrator.adapters.sources.mariadb.log_reader import MARIADB
from migrator.errors import SourceError
from tests.binlog_columns import CHARSETS
from tests.unit.sources.binlog.test_row_codec import Layout, layouts


def logged(layout: Layout) -> LoggedTable:
    return logged_table(layout.schema, layout.logged, layout.declared, CHARSETS, MARIADB)


def event(kind: int, columns: int, present: list[list[int]], images: list[bytes]) -> Event:
    """A row event that has these places of the table's columns, in each kind of image that it has."""
    width = (columns + 7) // 8
    bits = b"".join(sum(1 << place for place in places).to_bytes(width, "little") for places in present)
    return Event(kind, 0, 0, 0, 0, bytes(8) + bytes([columns]) + bits + b"".join(images))


def update(layout: Layout, lacking: set[int], rows: list[list[bytes | None]]) -> Event:
    places = [place for place in range(len(layout.kinds)) if place not in lacking]
    only = Layout([layout.kinds[place] for place in places], [True] * len(places), ())
    images = [only.image([row[place] for place in places]) for row in rows]
    return event(events.UPDATE_ROWS_V1, len(layout.kinds), [places, places], images)


def a_row(draw: Any, layout: Layout) -> list[bytes | None]:
    return [None if draw(st.integers(0, 6)) == 0 else draw(kind.values) for kind in layout.kinds]


@given(st.data(), layouts())
def test_images_without_columns_that_nobody_wants_are_read(data: st.DataObject, layout: Layout) -> None:
    unwanted = [place for place, wanted in enumerate(layout.wanted) if not wanted]
    lacking = data.draw(st.sets(st.sampled_from(unwanted))) if unwanted else set()
    rows = [a_row(data.draw, layout) for _ in range(2 * data.draw(st.integers(1, 3)))]
    table = logged(layout)
    found = changes_of(update(layout, lacking, rows), table)
    assert found == changes_of(update(layout, set(), rows), table)
    codec, _ = items_of(update(layout, lacking, rows), table)
    assert (codec is table.codec) == (not lacking)
    assert items_of(update(layout, lacking, rows), table)[0] is codec


@given(st.data(), layouts().filter(lambda layout: len(layout.kinds) > 1))
def test_a_wanted_column_that_is_missing_is_named(data: st.DataObject, layout: Layout) -> None:
    wanted = [place for place, want in enumerate(layout.wanted) if want]
    lacking = {data.draw(st.sampled_from(wanted))}
    with pytest.raises(SourceError, match="not complete"):
        items_of(update(layout, lacking, [a_row(data.draw, layout)] * 2), logged(layout))


@given(st.data(), layouts().filter(lambda layout: not all(layout.wanted)))
def test_so_are_images_of_an_update_that_lack_different_ones(data: st.DataObject, layout: Layout) -> None:
    places = list(range(len(layout.kinds)))
    without = [place for place in places if layout.wanted[place]]
    row = layout.image(a_row(data.draw, layout))
    with pytest.raises(SourceError, match="not complete"):
        items_of(event(events.UPDATE_ROWS_V1, len(places), [places, without], [row, row]), logged(layout))
