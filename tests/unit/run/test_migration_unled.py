"""A run whose attempt to lead failed has no side stay closed for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from migrator.errors import ConfigError, ConnectionFailed, FencedError, MigratorError
from migrator.run.cutover.gate import CutOvers, Gate
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.run.parts import Parts

_LOST = ConnectionFailed("the new side is lost", retryable=True)
_BROKEN = ConfigError("the mapping is broken")


@dataclass(frozen=True)
class _Parts:
    """As much of a run's parts as an attempt takes that fails at once."""

    prepare: Callable[[], str | None]
    cutover: CutOvers
    begun: Callable[[], bool] = lambda: True
    set_damage_aside: Any = str
    reads_replaced: bool = True
    catalog: Any = field(default_factory=lambda: SimpleNamespace(adopt=list))
    reload: Callable[[], Any] = lambda: None
    mapping: Any = None


def asked(*errors: MigratorError, stop: bool = False) -> tuple[list[tuple[str, bool]], Migration]:
    """Has each attempt of a run end by one of these errors; the calls by which it had switches undone."""
    calls: list[tuple[str, bool]] = []
    left, stopping = list(errors), Stopping()

    def undo(why: str, final: bool) -> str:
        calls.append((why, final))
        return "the old side is open"

    def prepare() -> str | None:
        if stop:
            stopping.request()
        raise left.pop(0)

    gate = Gate(cast(Any, None), lambda: None)
    migration = Migration(cast(Parts, _Parts(prepare, CutOvers(gate, undo=undo))))
    with pytest.raises(MigratorError, match=errors[-1].what):
        migration.run(stopping)
    assert not left
    return calls, migration


def test_whoever_tries_again_undoes_what_is_due_and_who_ends_undoes_at_once() -> None:
    calls, migration = asked(_LOST, _LOST, _BROKEN)
    assert calls == [(str(_LOST), False), (str(_LOST), False), (str(_BROKEN), True)]
    assert migration.progress.snapshot().warnings == ("the old side is open",)


def test_a_run_that_was_replaced_leaves_the_switch_to_whoever_leads() -> None:
    assert asked(FencedError("another process leads"))[0] == []


def test_a_run_that_was_told_to_stop_leaves_the_switch_to_the_next_one() -> None:
    assert asked(_BROKEN, stop=True)[0] == []
