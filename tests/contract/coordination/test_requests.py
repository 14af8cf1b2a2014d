"""The stores of dump requests without ZooKeeper keep the contract, and the file is checked."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from migrator.adapters.event_log.files.request_store import FileRequests
from migrator.adapters.memory.requests import MemoryRequests
from migrator.errors import RequestError
from migrator.model.codecs.codec import FORMAT
from migrator.model.requests.request import WHOLE
from tests.contract.coordination.requests_contract import TABLE, RequestsContract, Stores


class TestMemory(RequestsContract):
    def stores(self, directory: Path) -> Stores:
        store = MemoryRequests()
        return lambda: store


class TestFiles(RequestsContract):
    def stores(self, directory: Path) -> Stores:
        return lambda: FileRequests(directory / "state")

    def test_a_torn_or_edited_file_is_named(self, tmp_path: Path) -> None:
        store = FileRequests(tmp_path)
        store.update(lambda old: old.start((TABLE,), WHOLE))
        (file,) = tmp_path.glob("*.json")
        whole = file.read_bytes()
        for damaged in (whole[: len(whole) // 2], whole.replace(b"r1", b"r2"), b"", b"{}\n"):
            file.write_bytes(damaged)
            with pytest.raises(RequestError, match="can't be read") as caught:
                store.read()
            assert str(file) in caught.value.where
            with pytest.raises(RequestError):
                store.update(lambda old: old.start((TABLE,), WHOLE))
            assert file.read_bytes() == damaged, "nothing is written over what can't be read"

    def test_a_newer_format_is_refused(self, tmp_path: Path) -> None:
        store = FileRequests(tmp_path)
        store.update(lambda old: old.start((TABLE,), WHOLE))
        (file,) = tmp_path.glob("*.json")
        document = json.loads(file.read_bytes().partition(b"\n")[0]) | {"format": FORMAT + 1}
        line = json.dumps(document).encode()
        file.write_bytes(line + b'\n{"sha256":"' + hashlib.sha256(line).hexdigest().encode() + b'"}\n')
        with pytest.raises(RequestError) as caught:
            store.read()
        assert "format" in caught.value.cause

    def test_a_crash_while_writing_leaves_the_old_book(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store = FileRequests(tmp_path)
        book = store.update(lambda old: old.start((TABLE,), WHOLE))

        def crash(*_: object) -> None:
            raise SystemExit

        with monkeypatch.context() as patch:
            patch.setattr(os, "replace", crash)
            with pytest.raises(SystemExit):
                store.update(lambda old: old.pause("r1"))
        assert store.read() == book
        assert store.update(lambda old: old.pause("r1")).requests[0].state.value == "paused"
