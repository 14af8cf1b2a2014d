"""A machine that runs out of something ends a run by name; any other failure nobody expected is shown whole."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import pytest

from migrator.errors import MigratorError
from migrator.run.failure import Stopping
from migrator.run.migration import Migration
from migrator.run.parts import Parts


def migration(number: int) -> Migration:
    def prepare() -> str | None:
        raise OSError(number, os.strerror(number), "/state/eventlog")

    return migration_that(prepare)


def migration_that(prepare: Callable[[], str | None]) -> Migration:
    parts = SimpleNamespace(
        prepare=prepare,
        begun=lambda: False,
        set_damage_aside=str,
        reads_replaced=True,
        catalog=SimpleNamespace(adopt=list),
        cutover=None,
    )
    return Migration(cast(Parts, parts))


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EMFILE, "ulimit -n"),
        (errno.ENFILE, "fs.file-max"),
        (errno.ENOSPC, "free space"),
        (errno.EDQUOT, "quota"),
        (errno.ENOMEM, "memory"),
    ],
)
def test_a_shortage_is_named(number: int, remedy: str) -> None:
    with pytest.raises(MigratorError, match="refuses what the run needs") as raised:
        migration(number).run(Stopping())

    assert raised.value.where == "/state/eventlog"
    assert errno.errorcode[number] in raised.value.cause
    assert remedy in raised.value.remedy


def test_no_memory_is_named_as_well() -> None:
    def prepare() -> str | None:
        raise MemoryError("can't start new thread")

    with pytest.raises(MigratorError, match="no more memory") as raised:
        migration_that(prepare).run(Stopping())
    assert raised.value.cause == "can't start new thread"
    assert "start again" in raised.value.remedy


def test_what_nobody_expects_keeps_its_traceback() -> None:
    with pytest.raises(FileNotFoundError):
        migration(errno.ENOENT).run(Stopping())
