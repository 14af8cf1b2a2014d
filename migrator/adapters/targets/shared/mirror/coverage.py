"""The grains of joined targets that are covered while these are filled piece by piece."""

from __future__ import annotations

from collections.abc import Mapping

from migrator.adapters.targets.shared.mirror.mirrored import Typed
from migrator.adapters.targets.shared.mirror.store import MirrorStore
from migrator.model.progress import Filling
from migrator.model.reach import Reach
from migrator.ports.mirror import ALL_NUMBERS, Covered, JoinedTarget

NUMBERS: Typed = (("number", "bigint"),)


class Coverage:
    """The record of what is covered, in one transaction of a ``MirrorStore``."""

    def __init__(self, store: MirrorStore):
        self._store = store
        self._covering: dict[tuple[str, str], Covered] | None = None
        self._within: dict[tuple[str, Reach], str] = {}
        self._numbers: dict[str, int] = {}

    def all(self) -> Mapping[tuple[str, str], Covered]:
        """The targets that are being filled piece by piece, by name and digest."""
        if self._covering is None:
            self._covering = dict(self._store.covering())
        return self._covering

    def of(self, target: JoinedTarget) -> Covered | None:
        """The covered grains of a target; None of one that isn't being filled."""
        return self.all().get((target.table.id.name, target.digest()))

    def begin(self, target: JoinedTarget) -> None:
        """Notes that nothing of the target is covered."""
        rows = sum(
            int(str(self._store.rows(f"SELECT count(*) FROM {name}")[0][0])) for name in self._roots(target)
        )
        self.note(target, Covered(0, None, Filling(target.table.id.name, of_rows=rows)))

    def note(self, target: JoinedTarget, covered: Covered) -> None:
        """Notes what is covered from this transaction on; with its last reach the target is in step."""
        self._covering = None
        if covered.reach < len(target.reaches):
            self._store.note_covered(target, covered)
        else:
            self.whole(target)

    def whole(self, target: JoinedTarget) -> None:
        """Notes that the target is in step."""
        self._covering = None
        self._store.mark_filled(target)
        self._store.forget_covered(target)

    def more_rows(self, target: JoinedTarget, than: int) -> bool:
        """Tells whether the tables of the target's grains have more rows than these."""
        found = 0
        for name in self._roots(target):
            most = f"SELECT 1 FROM {name} LIMIT {than + 1:d}"
            found += int(str(self._store.rows(f"SELECT count(*) FROM ({most}) m")[0][0]))
        return found > than

    def touched(self, target: JoinedTarget, place: int, grains: str) -> str:
        """The temporary table of those touched grains of a reach that are covered.

        Others have no rows yet; what they will have is derived from the mirror as it is then.

        Args:
            target: whose reach it is.
            place: of the reach among the target's.
            grains: temporary table of all grains of the reach that the batch touches.
        """
        covered, reach = self.of(target), target.reaches[place]
        if covered is None:
            return grains
        kept = (target.table.id.name, reach)
        if kept not in self._within:
            self._within[kept] = self._store.scratch(f"covered {kept}", NUMBERS)
            bound = covered.bound(place)
            if bound is not None:
                which = "" if bound == ALL_NUMBERS else f" WHERE number <= {bound:d}"
                self._store.run(f"INSERT INTO {self._within[kept]} SELECT number FROM {grains}{which}")
        return self._within[kept]

    def number(self, touched: str) -> int:
        """The number of grains in a table that ``touched`` gave, counted once."""
        if touched not in self._numbers:
            self._numbers[touched] = int(str(self._store.rows(f"SELECT count(*) FROM {touched}")[0][0]))
        return self._numbers[touched]

    def _roots(self, target: JoinedTarget) -> list[str]:
        """The mirror's tables that have the target's grains, each once."""
        schemas = [reach.nodes[index].schema for reach in target.reaches for index in reach.roots()]
        return list(dict.fromkeys(self._store.mirrored(schema).table for schema in schemas))
