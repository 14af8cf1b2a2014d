"""A hook that is a command: it hears what is pointed where, and nothing of it goes on past its time."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from migrator.adapters.hooks.command import SwitchHook
from migrator.errors import CutoverError
from migrator.model.cutover.record import Side, What
from migrator.model.server import Server

SERVER = Server("postgresql", "db", 5432, "shop", "u", "")


def hook(writes: str, reads: str = "") -> SwitchHook:
    return SwitchHook({What.WRITES: writes, What.READS: reads}, "shop", dict.fromkeys(Side, SERVER))


def test_it_hears_what_is_pointed_where(tmp_path: Path) -> None:
    said = tmp_path / "said"
    command = f'echo "$MIGRATOR_WHAT $MIGRATOR_SIDE $MIGRATOR_HOST $MIGRATOR_PORT $MIGRATOR_KEY" >> {said}'
    both = hook(command, f"{command}.reads")
    both.call(Side.NEW, "1-new", 10)
    both.call(Side.OLD, "reads-2-old", 10, What.READS)
    assert said.read_text() == "writes new db 5432 shop-1-new\n"
    assert (tmp_path / "said.reads").read_text() == "reads old db 5432 shop-reads-2-old\n"


def test_what_it_has_started_ends_with_it(tmp_path: Path) -> None:
    """A shell's child that went on would point the application while the switch is undone."""
    late = tmp_path / "late"
    before = time.monotonic()
    with pytest.raises(CutoverError, match="didn't end within"):
        hook(f"(sleep 2; touch {late}); true").call(Side.NEW, "1", 0.3)
    assert time.monotonic() - before < 1.5
    time.sleep(2.5)
    assert not late.exists()


def test_a_hook_that_the_settings_have_no_more_is_no_success() -> None:
    with pytest.raises(CutoverError, match="the settings have none"):
        hook("true").call(Side.NEW, "1", 10, What.READS)
