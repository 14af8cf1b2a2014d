"""What every place of progress hints must do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from migrator.model.hint import Hint
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import TableId
from migrator.ports.hints import Hints

Places = Callable[[], Hints]
"""Another process's view of one and the same place."""

DUMP = TableDump(TableId("public", "orders"), after=("a", b"\x00"), rows=3, dropped_rows=1)
FULL = Hint(
    3,
    1_700_000_000_000_000,
    42,
    9_999,
    Checkpoint(Position(7, "0/7@1"), dumps=(DUMP,)),
    "näh \ud800",
    ("capture waits", "schmäler \ud800"),
)


class HintsContract:
    """Subclass it and implement ``places``."""

    def places(self, directory: Path) -> Places:
        raise AssertionError("a subclass says which place")

    def test_there_is_none_at_first(self, tmp_path: Path) -> None:
        assert self.places(tmp_path)().read() is None

    def test_others_read_the_last_one(self, tmp_path: Path) -> None:
        places = self.places(tmp_path)
        for hint in (Hint(1, 5), FULL, Hint(2, 6), FULL):
            places().publish(hint)
            assert places().read() == hint
