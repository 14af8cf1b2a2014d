"""The words of `migrator status` for next mappings of row-wise targets."""

from __future__ import annotations

from dataclasses import replace

from migrator.cli.status.words import remap_lines
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, Mapped, Phase, Remap, TableDump
from migrator.model.remaps.remap import moved
from migrator.model.table import TableId

TABLE = TableId("s", "a")
ASKED = Checkpoint(
    Position(1, "1"),
    dumps=(TableDump(TABLE, done=True),),
    fed=(),
    mapped=(),
    remaps=(Remap("t", "t_migrator_next", Phase.FILLING),),
)


def test_each_phase_has_its_words() -> None:
    under_way = TableDump(TABLE, rows=3, estimated_rows=9, request="r1.1")
    filled = replace(
        ASKED,
        mapped=(Mapped("t_migrator_next", "s", "shape"),),
        awaited=(("t_migrator_next", TABLE, "r1.1"),),
        requests=(under_way,),
    )
    whole = replace(filled, requests=(replace(under_way, done=True),))
    other = replace(under_way, request="r2.1")
    assert [remap_lines(one, one.requests if one else [])[0] for one in (ASKED, filled, whole)] == [
        "t: asked for; the next start begins to fill t_migrator_next",
        "t: t_migrator_next is being filled: 3 of about 9 source rows are read",
        "t: t_migrator_next is filled; its rows are about to be merged into t",
    ]
    assert "0 of about 0" in remap_lines(filled, [other])[0]
    assert [remap_lines(moved(filled, "t", phase), [])[0] for phase in list(Phase)[1:]] == [
        "t: its next function is in force; t_migrator_next is dropped with the next start",
        "t: its next function is in force",
        "t: given up; t_migrator_next is dropped with the next start",
    ]
    assert remap_lines(None, []) == []
