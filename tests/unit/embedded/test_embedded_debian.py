"""Unpacked programs are started through the unpacked linker, also where another program starts them."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from migrator.embedded.debian import DebianServer, linked
from migrator.errors import MigratorError

PROGRAM = "usr/bin/serve"
SERVER = DebianServer("Thing", "thing-1.2", "thing", ("sid",), PROGRAM)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Something unpacked: a linker that tells how it is called, and a program."""
    monkeypatch.setenv("MIGRATOR_THING_1_2", str(tmp_path))
    root = tmp_path / "root"
    for name, text in (("usr/lib64/ld-linux-x.so.2", '#!/bin/sh\necho "$@"\n'), (PROGRAM, "ELF")):
        file = root / name
        file.parent.mkdir(parents=True)
        file.write_text(text)
        file.chmod(0o755)
    (root / "usr/lib/x-linux-gnu").mkdir(parents=True)
    return root


def called(root: Path) -> list[str]:
    done = subprocess.run([root / PROGRAM, "a b"], capture_output=True, text=True, check=True)
    return done.stdout.split()


def expected(root: Path) -> list[str]:
    program = str(root / PROGRAM)
    return [
        "--library-path",
        str(root / "usr/lib/x-linux-gnu"),
        "--argv0",
        program,
        f"{program}.elf",
        "a",
        "b",
    ]


def test_a_wrapped_program_is_called_by_its_name_through_the_linker(root: Path) -> None:
    for _ in range(2):
        assert SERVER.startable(PROGRAM) == root
        assert called(root) == expected(root)
        assert (root / f"{PROGRAM}.elf").read_text() == "ELF"


def test_wrapping_that_was_cut_short_is_done_again(root: Path) -> None:
    os.link(root / PROGRAM, root / f"{PROGRAM}.elf")
    (root / f"{PROGRAM}.new").write_text("half a scr")
    SERVER.startable(PROGRAM)
    assert called(root) == expected(root)


def test_no_linker_is_a_named_error(tmp_path: Path) -> None:
    with pytest.raises(MigratorError, match="no dynamic linker") as caught:
        linked(tmp_path)
    assert caught.value.where == str(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="others start servers as themselves")
def test_a_folder_may_be_entered_whatever_the_umask_of_who_fills_it(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = root.parent
    closed.chmod(0o700)
    SERVER.install()
    assert closed.stat().st_mode & 0o777 == 0o755, "one that was closed before is opened"
    deep = root.parent / "new" / "deep"
    monkeypatch.setenv("MIGRATOR_THING_1_2", str(deep))
    monkeypatch.setattr(DebianServer, "_download", lambda _self, scratch: scratch)
    before = os.umask(0o077)
    try:
        with pytest.raises(FileNotFoundError):
            SERVER.startable(PROGRAM)  # nothing is unpacked
    finally:
        os.umask(before)
    assert {one.stat().st_mode & 0o777 for one in (deep, deep.parent)} == {0o755}
