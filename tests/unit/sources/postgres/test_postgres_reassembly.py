"""Streamed transactions put back into commit order: any interleaving, rolled back wholly or in part."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from migrator.adapters.sources.postgres.log.pgoutput import Begin, Commit, Insert, parse
from migrator.adapters.sources.postgres.log.reassembly import Reassembly
from migrator.errors import SourceError

KEEPALIVE = b"k" + struct.pack("!QqB", 99, 0, 0)
OID = 7


class Sent:
    """What a server sends, already received: stands for ``ReplicationStream`` on its reading side."""

    def __init__(self, messages: list[bytes]):
        self._messages = list(messages)
        self.signs = 0

    def take(self, most: int) -> list[bytes]:
        taken, self._messages = self._messages[:most], self._messages[most:]
        return taken

    def busy(self) -> None:
        self.signs += 1


def insert(text: str, xid: int | None = None) -> bytes:
    data = text.encode()
    streamed = b"" if xid is None else struct.pack("!I", xid)
    return b"I" + streamed + struct.pack("!I", OID) + b"N\0\1t" + struct.pack("!I", len(data)) + data


def start(xid: int, first: bool) -> bytes:
    return b"S" + struct.pack("!IB", xid, first)


def commit(xid: int, lsn: int) -> bytes:
    return b"c" + struct.pack("!IBQQq", xid, 0, lsn, lsn + 8, 1000)


def abort(xid: int, subtransaction: int) -> bytes:
    return b"A" + struct.pack("!II", xid, subtransaction)


def plain(lsn: int, xid: int, text: str) -> list[bytes]:
    begin = b"B" + struct.pack("!QqI", lsn, 1000, xid)
    return [begin, insert(text), b"C" + struct.pack("!BQQq", 0, lsn, lsn + 8, 1000)]


def all_of(reassembly: Reassembly, most: int = 3) -> Iterator[bytes]:
    """What is handed on, few messages at a time."""
    while taken := reassembly.take(most):
        yield from taken


def told(messages: list[bytes], folder: Path | None = None) -> list[tuple[int, int, list[str]]]:
    """(xid, commit LSN, texts) of each transaction as the log reader gets it."""
    reassembly = Reassembly(Sent(messages), folder)  # type: ignore[arg-type]
    found: list[tuple[int, int, list[str]]] = []
    for payload in all_of(reassembly):
        match parse(payload):
            case Begin(final_lsn, _, xid):
                found.append((xid, final_lsn, []))
            case Insert(_, new):
                found[-1][2].append(str(new[0]))
            case Commit(commit_lsn, end_lsn, _):
                assert (commit_lsn, end_lsn) == (found[-1][1], found[-1][1] + 8)
    assert reassembly.collected_bytes() == 0
    return found


def test_pieces_of_several_transactions_come_whole_in_commit_order(tmp_path: Path) -> None:
    messages = [
        start(1, True), insert("a1", 1), b"E",
        start(2, True), insert("b1", 2), b"E",
        *plain(10, 3, "small"),
        start(1, False), insert("a2", 1), b"E",
        commit(2, 20),
        commit(1, 30),
    ]  # fmt: skip
    expected = [(3, 10, ["small"]), (2, 20, ["b1"]), (1, 30, ["a1", "a2"])]
    assert told(messages, tmp_path / "made") == expected
    assert list((tmp_path / "made").iterdir()) == []  # nothing is left, nothing is seen meanwhile


def test_what_was_rolled_back_never_comes() -> None:
    messages = [
        start(1, True), insert("kept", 1), insert("undone", 11), insert("also undone", 11), b"E",
        abort(1, 11),
        start(2, True), insert("gone", 2), b"E",
        abort(2, 2),
        start(1, False), insert("released", 12), b"E",
        abort(1, 13),  # of which nothing was streamed
        commit(1, 30),
    ]  # fmt: skip
    assert told(messages) == [(1, 30, ["kept", "released"])]


def test_a_transaction_without_anything_of_ours_is_empty() -> None:
    assert told([start(1, True), b"O" + bytes(8) + b"elsewhere\0", b"E", commit(1, 30)]) == [(1, 30, [])]


def test_keepalives_inside_a_piece_are_not_passed_on() -> None:
    sent = [start(1, True), KEEPALIVE, insert("a", 1), b"E", KEEPALIVE, commit(1, 30)]
    seen = list(all_of(Reassembly(Sent(sent), None)))  # type: ignore[arg-type]
    assert seen[0] == KEEPALIVE
    assert [payload[:1] for payload in seen[1:]] == [b"B", b"I", b"C"]


def test_feedback_goes_out_while_a_large_transaction_is_handed_on() -> None:
    sent = Sent([start(1, True), *[insert("x", 1)] * 5000, b"E", commit(1, 30)])
    assert len(list(all_of(Reassembly(sent, None)))) == 5002  # type: ignore[arg-type]
    assert sent.signs == 3


@dataclass
class _Running:
    xid: int
    pieces: int = 0
    kept: list[str] = field(default_factory=list)
    streamed_subs: dict[int, list[str]] = field(default_factory=dict)


@pytest.mark.parametrize("seed", range(60))
def test_any_interleaving_gives_the_committed_rows_in_commit_order(seed: int) -> None:
    dice = random.Random(seed)
    messages: list[bytes] = []
    expected: list[tuple[int, int, list[str]]] = []
    running: list[_Running] = []
    xid = lsn = 100
    for step in range(120):
        lsn += 10
        what = dice.random()
        if what < 0.2 or not running:
            xid += 10
            running.append(_Running(xid))
        each = dice.choice(running)
        if (
            what < 0.6
        ):  # a piece with rows of the transaction itself, and of a savepoint kept or rolled back later
            sub = each.xid + dice.randint(1, 3)
            texts, sub_texts = [f"{step}.{n}" for n in range(dice.randint(0, 4))], [f"{step}.s"]
            rows = [insert(text, each.xid) for text in texts] + [insert(text, sub) for text in sub_texts]
            messages += [start(each.xid, each.pieces == 0), *rows, b"E"]
            each.pieces += 1
            each.kept += texts + sub_texts
            each.streamed_subs.setdefault(sub, []).extend(sub_texts)
        elif what < 0.7 and each.streamed_subs:
            sub = dice.choice(sorted(each.streamed_subs))
            undone = each.streamed_subs.pop(sub)
            messages.append(abort(each.xid, sub))
            each.kept = [text for text in each.kept if text not in undone]
            running.remove(each)  # its xid is used up: end it here
            messages.append(commit(each.xid, lsn))
            expected.append((each.xid, lsn, each.kept))
        elif what < 0.85 and each.pieces:
            running.remove(each)
            messages.append(commit(each.xid, lsn))
            expected.append((each.xid, lsn, each.kept))
        elif what < 0.93 and each.pieces:
            running.remove(each)
            messages.append(abort(each.xid, each.xid))
        else:
            messages += plain(lsn, 1, f"{step}")
            expected.append((1, lsn, [f"{step}"]))
    messages += [abort(each.xid, each.xid) for each in running if each.pieces]
    assert told(messages) == expected
    assert any(len(rows) > 1 for _, _, rows in expected)


@pytest.mark.parametrize(
    "messages",
    [
        [b"E"],
        [start(1, False)],
        [start(1, True), start(1, False)],
        [start(1, True), b"E", start(1, True)],
        [start(1, True), commit(1, 5)],
        [commit(1, 5)],
        [abort(1, 1)],
    ],
)
def test_pieces_that_make_no_sense_are_named(messages: list[bytes]) -> None:
    with pytest.raises(SourceError, match="make no sense") as caught:
        told(messages)
    assert caught.value.retryable


def test_a_folder_that_takes_no_file_stops_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(SourceError, match="can't be collected") as caught:
        told([start(1, True), insert("a", 1)], tmp_path / "file")
    assert not caught.value.retryable
    assert "streaming = false" in caught.value.remedy
