"""The list of changed keys: complete, or known not to be; also after kills, takeovers and a full disk."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

from migrator.adapters.event_log import changed_keys
from migrator.adapters.event_log.changed_keys import ChangedKeysFiles, ChangedKeysRead
from migrator.errors import EventLogError


def keys(*numbers: int) -> pa.Table:
    return pa.table({"id": pa.array(numbers, pa.int64()), "kind": [f"k{number}" for number in numbers]})


def ids(found: pa.Table | None) -> list[int] | None:
    return None if found is None else sorted(found["id"].to_pylist()) if found.num_rows else []


def test_keys_are_those_of_later_segments_and_each_is_there_once(tmp_path: Path) -> None:
    writer, reader = ChangedKeysFiles(tmp_path), ChangedKeysRead(tmp_path)
    writer.begin(1, 0, 0)
    for segment, numbers in ((1, (1, 2)), (2, (2, 3)), (3, (3,))):
        writer.note(segment, "a", keys(*numbers))
    writer.note(3, 'hostile "name"/../\n', keys(9))
    assert ids(reader.since(0, "a", 1)) == [1, 2, 3]
    assert ids(reader.since(1, "a", 1)) == [2, 3]
    assert ids(reader.since(3, "a", 1)) == [], "read while it is written"
    assert ids(reader.since(0, 'hostile "name"/../\n', 1)) == [9]
    assert ids(reader.since(0, "b", 1)) == []


def test_leaders_of_this_machine_go_on_and_another_machines_leave_a_gap(tmp_path: Path) -> None:
    writer, reader = ChangedKeysFiles(tmp_path), ChangedKeysRead(tmp_path)
    writer.begin(1, 0, 0)
    writer.note(1, "a", keys(1))
    ChangedKeysFiles(tmp_path).begin(2, 1, 1)  # the first one was killed: it closed nothing
    assert ids(reader.since(0, "a", 2)) == [1]
    assert reader.since(0, "a", 3) is None, "a leader of another machine has applied what isn't listed here"
    later = ChangedKeysFiles(tmp_path)
    later.begin(4, 7, 3)
    later.note(8, "a", keys(5))
    assert reader.since(6, "a", 4) is None
    assert ids(reader.since(7, "a", 4)) == [5]


def test_a_list_that_begins_late_reaches_back_no_further(tmp_path: Path) -> None:
    """As after an upgrade from a version that listed nothing, or a state folder that was lost."""
    writer, reader = ChangedKeysFiles(tmp_path), ChangedKeysRead(tmp_path)
    writer.begin(5, 40, 4)
    writer.note(41, "a", keys(1))
    assert reader.since(39, "a", 5) is None
    assert ids(reader.since(40, "a", 5)) == [1]
    assert ChangedKeysRead(tmp_path / "lost").since(40, "a", 5) is None


def test_rows_whose_keys_nobody_listed_are_known_to_be_missing(tmp_path: Path) -> None:
    writer, reader = ChangedKeysFiles(tmp_path), ChangedKeysRead(tmp_path)
    writer.begin(1, 0, 0)
    writer.unknown(4, "a")
    writer.note(5, "a", keys(1))
    assert reader.since(3, "a", 1) is None
    assert ids(reader.since(4, "a", 1)) == [1]
    assert ids(reader.since(0, "b", 1)) == []


def test_a_message_that_is_torn_was_never_applied(tmp_path: Path) -> None:
    """Cut anywhere, what is left is a beginning of what was listed."""
    writer = ChangedKeysFiles(tmp_path)
    writer.begin(1, 0, 0)
    for segment in range(1, 6):
        writer.note(segment, "a", keys(segment))
    (path,) = tmp_path.glob("*/*.arrows")
    content = path.read_bytes()
    lengths = set()
    for cut in range(len(content) + 1):
        path.write_bytes(content[:cut])
        found = ids(ChangedKeysRead(tmp_path).since(0, "a", 1))
        assert found == list(range(1, len(found or []) + 1))
        lengths.add(len(found or []))
    assert lengths == set(range(6))


def test_a_list_that_grows_too_long_forgets_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed_keys, "PARTS_MAX", 3)
    forgets_its_beginning(tmp_path / "parts", ChangedKeysFiles(tmp_path / "parts", part_bytes=1))
    monkeypatch.undo()
    writer = ChangedKeysFiles(tmp_path / "sizing", part_bytes=1)
    writer.begin(1, 0, 0)
    writer.note(1, "a", keys(1))
    writer.close()
    size = sum(path.stat().st_size for path in tmp_path.glob("sizing/*/*"))
    kept = ChangedKeysFiles(tmp_path / "bytes", part_bytes=1, kept_bytes=2 * size + size // 2)
    forgets_its_beginning(tmp_path / "bytes", kept)


def forgets_its_beginning(tmp_path: Path, writer: ChangedKeysFiles) -> None:
    reader = ChangedKeysRead(tmp_path)
    writer.begin(1, 0, 0)
    for segment in range(1, 8):
        writer.note(segment, "a", keys(segment))
    assert reader.since(0, "a", 1) is None
    assert ids(reader.since(5, "a", 1)) == [6, 7]
    assert len(list(tmp_path.iterdir())) == 3


def test_restarts_alone_forget_nothing(tmp_path: Path) -> None:
    """A leader that is killed again and again, as in an incident: what changed in the meantime is known."""
    reader = ChangedKeysRead(tmp_path)
    for epoch in range(1, 41):
        writer = ChangedKeysFiles(tmp_path)
        writer.claim(epoch, epoch - 1)
        writer.begin(epoch, epoch - 1, epoch - 1)
        writer.note(epoch, "a", keys(epoch))
    assert ids(reader.since(0, "a", 40)) == list(range(1, 41))


def test_a_leader_that_was_killed_before_it_began_leaves_no_gap(tmp_path: Path) -> None:
    reader = ChangedKeysRead(tmp_path)
    first = ChangedKeysFiles(tmp_path)
    first.claim(1, 0)
    first.begin(1, 0, 0)
    first.note(1, "a", keys(1))
    ChangedKeysFiles(tmp_path).claim(2, 1)  # killed behind the ledger's take-over
    ChangedKeysFiles(tmp_path).claim(3, 2)
    last = ChangedKeysFiles(tmp_path)
    last.claim(4, 3)
    last.begin(4, 1, 3)
    last.note(2, "a", keys(2))
    assert ids(reader.since(0, "a", 4)) == [1, 2]
    (tmp_path / f"{2:020d}.claimed").unlink()
    assert reader.since(0, "a", 4) is None, "as if another machine had led"


def test_claims_hide_no_part_that_was_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A leader killed between its part and the removal of its claim; the part is forgotten later."""
    monkeypatch.setattr(changed_keys, "PARTS_MAX", 2)
    for epoch in range(1, 5):
        writer = ChangedKeysFiles(tmp_path)
        writer.claim(epoch, epoch - 1)
        claim = next(tmp_path.glob("*.claimed"))
        content = claim.read_text()
        writer.begin(epoch, epoch - 1, epoch - 1)
        writer.note(epoch, "a", keys(epoch))
        claim.write_text(content)
        assert len(list(tmp_path.glob("*.claimed"))) <= 2
    assert ChangedKeysRead(tmp_path).since(1, "a", 4) is None
    assert ids(ChangedKeysRead(tmp_path).since(2, "a", 4)) == [3, 4]


def test_parts_of_two_boots_do_not_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut may have taken lines that weren't on the disk yet."""
    writer, reader = ChangedKeysFiles(tmp_path), ChangedKeysRead(tmp_path)
    writer.begin(1, 0, 0)
    writer.note(1, "a", keys(1))
    monkeypatch.setattr(changed_keys, "_boot", lambda: "another")
    writer.begin(2, 1, 1)
    assert reader.since(0, "a", 2) is None
    assert ids(reader.since(1, "a", 2)) == []


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 2}', '{"format": 1, "epoch": 1}', "\0"])
def test_a_head_that_is_damaged_or_newer_lists_nothing(tmp_path: Path, content: str) -> None:
    ChangedKeysFiles(tmp_path).begin(1, 0, 0)
    (head,) = tmp_path.glob("*/begun.json")
    head.write_text(content)
    assert ChangedKeysRead(tmp_path).since(0, "a", 1) is None


def test_what_the_disk_refuses_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EventLogError, match="the list of changed keys can't be written or read"):
        ChangedKeysFiles(tmp_path / "file" / "below").begin(1, 0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_no_key_is_ever_missing(tmp_path: Path, seed: int) -> None:
    """Random leaders, kills and batches that are applied again: what is returned has all applied keys, or is None."""
    chance, reader = random.Random(seed), ChangedKeysRead(tmp_path)
    applied: list[tuple[int, int]] = []
    segment = epoch = 0
    for _ in range(6):
        before, epoch = epoch, epoch + 1
        if chance.random() < 0.3:  # another machine leads for a while
            applied.append((segment := segment + 1, chance.randrange(50)))
            before, epoch = epoch, epoch + 1
        writer = ChangedKeysFiles(tmp_path, chance.choice((1, 1 << 20)), chance.choice((2_000, 1 << 20)))
        if chance.random() < 0.3:  # killed behind the take-over
            writer.claim(epoch, before)
            before, epoch = epoch, epoch + 1
        writer.claim(epoch, before)
        writer.begin(epoch, segment, before)
        for _ in range(chance.randrange(5)):
            key = chance.randrange(50)
            for table in ("a", "b"):
                writer.note(segment + 1, table, keys(key))
            if chance.random() < 0.2:
                break  # killed before it was applied
            applied.append((segment := segment + 1, key))
        for since in range(segment + 1):
            for table in ("a", "b"):
                found = ids(reader.since(since, table, epoch))
                assert found is None or {key for at, key in applied if at > since} <= set(found)
