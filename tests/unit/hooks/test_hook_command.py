"""A hook that is a command: it hears what is pointed where, and nothing of it goes on past its time."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import IO

import pytest

from migrator.adapters.hooks.command import SwitchHook
from migrator.adapters.hooks.events import told_of
from migrator.adapters.hooks.shell import ran
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


def test_a_hook_that_the_settings_have_no_more_is_no_success() -> None:
    with pytest.raises(CutoverError, match="the settings have none"):
        hook("true").call(Side.NEW, "1", 10, What.READS)


SCRIPTS = Path(__file__).parents[3] / "docs" / "how-to" / "hooks"


def test_the_flag_of_the_documents_is_set_by_the_hooks_contract(tmp_path: Path) -> None:
    flagged = hook(f"FLAG_FOLDER={tmp_path} FLAG_READ_S=0 python3 {SCRIPTS / 'flag.py'}")
    for side, key in ((Side.NEW, "1"), (Side.NEW, "1"), (Side.OLD, "2")):
        flagged.call(side, key, 10)
        flag = json.loads((tmp_path / "writes").read_text())
        assert flag == {"side": side.value, "key": f"shop-{key}"}
    assert [path.name for path in tmp_path.iterdir()] == ["writes"]


@pytest.mark.parametrize("script", sorted(path.name for path in SCRIPTS.glob("*.sh")))
def test_a_script_of_the_documents_refuses_what_it_does_not_know(script: str, tmp_path: Path) -> None:
    """Before it says anything to a proxy, which isn't there."""
    command = f"MIGRATOR_WHAT=other PATH=/usr/bin:/bin sh {SCRIPTS / script}"
    with pytest.raises(CutoverError, match=r"exit code .*parameter|exit code .*unset|exit code .*not set"):
        hook(command).call(Side.NEW, "1", 10)


def test_what_a_command_says_fills_no_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is told of disks that fill."""
    files: list[IO[bytes]] = []

    temporary = tempfile.TemporaryFile

    def kept() -> IO[bytes]:
        found = temporary()
        files.append(os.fdopen(os.dup(found.fileno()), "rb"))
        return found

    monkeypatch.setattr("migrator.adapters.hooks.shell.tempfile.TemporaryFile", kept)
    talks = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do head -c 2000000 /dev/zero; sleep 0.2; done; echo last; exit 3"
    said = ran(talks, "", dict(os.environ), 60, 100)
    assert said.endswith("last")
    sizes = [os.fstat(one.fileno()).st_size for one in files]
    for one in files:
        one.close()
    assert max(sizes) < 24_000_000


def test_long_words_of_an_event_start_a_command_all_the_same(tmp_path: Path) -> None:
    """The system takes no variable of 128 KiB; standard input has all of it."""
    long = "ä\0" * 200_000
    assert (
        told_of(f'printf %s "$MIGRATOR_WORDS" > {tmp_path}/words; cat > {tmp_path}/all', {"words": long})
        == ""
    )
    assert (tmp_path / "words").read_text() == "ä" * 16_000
    assert json.loads((tmp_path / "all").read_text()) == {"words": long}
