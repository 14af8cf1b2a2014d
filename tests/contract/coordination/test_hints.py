"""The place of hints without ZooKeeper keeps the contract."""

from __future__ import annotations

import os
from pathlib import Path

from migrator.adapters.coordination.local.hints import FileHints
from migrator.model.codecs.codec import FORMAT
from tests.contract.coordination.hints_contract import FULL, HintsContract, Places


class TestFile(HintsContract):
    def places(self, directory: Path) -> Places:
        return lambda: FileHints(directory / "state")

    def test_what_is_torn_or_newer_is_no_hint(self, tmp_path: Path) -> None:
        hints = FileHints(tmp_path)
        hints.publish(FULL)
        (file,) = tmp_path.glob("*.json")
        assert file.stat().st_mode & 0o777 == 0o600
        whole = file.read_text()
        for content in (whole[:-5], "", whole.replace(f'"format":{FORMAT}', f'"format":{FORMAT + 1}')):
            file.write_text(content)
            assert hints.read() is None
        hints.publish(FULL)
        assert hints.read() == FULL

    def test_what_a_kill_left_is_removed_and_what_another_writes_is_not(self, tmp_path: Path) -> None:
        left, written = tmp_path / ".progress-1.tmp", tmp_path / ".progress-2.tmp"
        for file in (left, written):
            file.touch()
        os.utime(left, (0, 0))
        FileHints(tmp_path).publish(FULL)
        assert not left.exists()
        assert written.exists()
