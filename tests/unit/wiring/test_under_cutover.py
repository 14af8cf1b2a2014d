"""What a planned cut-over refuses, it refuses of both ways: they have one record."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from migrator.errors import CutoverError
from migrator.model.cutover.record import Phase, Record, Side
from migrator.wiring import under_cutover
from migrator.wiring.under_cutover import refuse_under_cutover
from tests.unit.run.cutover.world import plan_of

_THERE = SimpleNamespace(name="shop", counterpart="shop_back", reversed=False)
_BACK = SimpleNamespace(name="shop_back", counterpart="shop", reversed=True)


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> Callable[[Record | None], None]:
    """Keeps a record of the migration ``shop``."""

    def keep(record: Record | None) -> None:
        def copy(_: object, migration: str, where: str) -> Any:
            found = record if migration == "shop" else None
            return SimpleNamespace(read=lambda: found, close=lambda: None)

        monkeypatch.setattr(under_cutover, "Copy", copy)
        monkeypatch.setattr(under_cutover, "target_database", lambda _: None)

    return keep


@pytest.mark.parametrize("way", [_THERE, _BACK], ids=["there", "back"])
def test_either_way_is_refused_until_the_plan_is_given_up(
    way: SimpleNamespace, kept: Callable[[Record | None], None]
) -> None:
    settings: Any = SimpleNamespace(**vars(way), target=SimpleNamespace(url=lambda: "a database"))
    kept(None)
    refuse_under_cutover(settings, "accepting another mapping")
    kept(Record(plan_of(), phase=Phase.FINISHED))
    refuse_under_cutover(settings, "accepting another mapping")
    for phase in (Phase.IDLE, Phase.DRAINING):
        kept(Record(plan_of(), phase=phase, open_side=Side.NEW))
        with pytest.raises(CutoverError, match="accepting another mapping can't be done while a cut-over"):
            refuse_under_cutover(settings, "accepting another mapping")


@pytest.mark.parametrize("way", [_THERE, _BACK], ids=["there", "back"])
def test_once_the_old_side_was_given_up_rows_of_the_new_one_are_left_alone(
    way: SimpleNamespace, kept: Callable[[Record | None], None]
) -> None:
    settings: Any = SimpleNamespace(**vars(way), target=SimpleNamespace(url=lambda: "a database"))
    kept(Record(plan_of(), phase=Phase.FINISHED, open_side=Side.OLD, turn=2))
    refuse_under_cutover(settings, "a reset")
    kept(Record(plan_of(), phase=Phase.FINISHED, open_side=Side.NEW, turn=1))
    with pytest.raises(CutoverError, match="a reset can't be done once the old side was given up") as refused:
        refuse_under_cutover(settings, "a reset")
    assert "Removing everything" in refused.value.remedy
