"""MySQL's GTID sets, positions, witness and GTID events, without a server."""

from __future__ import annotations

import json
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.adapters.sources.binlog.events.events import (
    MYSQL_ANONYMOUS_GTID,
    MYSQL_GTID,
    MYSQL_TAGGED_GTID,
    Event,
)
from migrator.adapters.sources.mysql.gtid_set import (
    GrowingSet,
    GtidSet,
    Origin,
    parse_owned,
    parse_set,
)
from migrator.adapters.sources.mysql.position import LogPlace, parse_position
from migrator.adapters.sources.mysql.track import SetTrack, transaction_id
from migrator.adapters.sources.mysql.witness import witness_of
from migrator.errors import SourceError
from migrator.model.position import Position
from verify.readers.mysql.gtids import count, gtid_intervals, owned_gtids, text_of

UUID = "feb03000-e518-11f1-bf38-02fc00000001"
OTHER = "00000000-0000-0000-0000-0000000000ff"
TAGGED_EVENT = (  # as MySQL 9.7.4 wrote it for UUID:mytag:1
    "027200000002f903c102600095033022c503fd027004f103000000020404060a6d7974616708000a040c7f52765272ba6006"
)
PREVIOUS_GTIDS = (  # the same server's Previous_gtids event: UUID:1-8:mytag:1
    "0102000000000001feb03000e51811f1bf3802fc0000000100010000000000000001000000000000000900000000000000"
    "feb03000e51811f1bf3802fc000000010a6d79746167010000000000000001000000000000000200000000000000"
)

numbers = st.sets(st.integers(1, 60), min_size=1)
sets = st.dictionaries(
    st.tuples(st.sampled_from([int(UUID.replace("-", ""), 16), 255]), st.sampled_from(["", "a", "b_2"])),
    numbers,
)


def members(gtids: GtidSet) -> set[tuple[Origin, int]]:
    return {(o, n) for o, found in gtids.intervals.items() for a, b in found for n in range(a, b + 1)}


def made(content: dict[Origin, set[int]]) -> GtidSet:
    growing = GrowingSet(GtidSet({}))
    for origin, each in content.items():
        for number in sorted(each, key=lambda n: n * 7 % 61):  # any order
            growing.add(origin, number)
    assert growing.count == sum(map(len, content.values()))
    return parse_set(str(growing))


@given(sets, sets)
def test_sets_behave_like_sets(one: dict[Origin, set[int]], two: dict[Origin, set[int]]) -> None:
    first, second = made(one), made(two)
    assert members(first) == {(o, n) for o, found in one.items() for n in found}
    assert members(first.union(second)) == members(first) | members(second)
    assert first.within(second) is (members(first) <= members(second))
    assert first.count() == len(members(first))
    assert parse_set(str(first)) == first
    witness = witness_of(first)
    for origin in {**one, **two}:
        for number in range(62):
            known = (origin, number) in members(first)
            assert ((origin, number) in first) is known
            assert witness.contains(transaction_id(origin, number)) is known
    judged = gtid_intervals(str(first))
    assert judged is not None
    assert count(judged) == first.count()
    assert gtid_intervals(text_of(judged)) == judged


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), max_size=30), st.randoms())
def test_the_text_of_a_growing_set_is_always_that_of_the_set(
    runs: list[tuple[int, int]], random: Random
) -> None:
    """Runs of successive numbers of three origins, with gaps that are filled later."""
    growing, left = GrowingSet(GtidSet({})), {origin: list(range(1, 200)) for origin in range(3)}
    has: dict[Origin, set[int]] = {}
    for origin, length in runs:
        at = random.choice([0, random.randrange(3)])
        for _ in range(length):
            number = left[origin].pop(at)
            assert ((origin, ""), number) not in growing
            if growing.is_next((origin, ""), number):
                assert number - 1 in has[(origin, "")]
            growing.add((origin, ""), number)
            has.setdefault((origin, ""), set()).add(number)
            assert str(growing) == str(parse_set(str(growing)))
            assert members(parse_set(str(growing))) == {(o, n) for o, found in has.items() for n in found}


def test_the_binary_form_is_the_servers() -> None:
    assert parse_set(f"{UUID}:1-8:mytag:1").encoded().hex() == PREVIOUS_GTIDS
    assert parse_set(f"{UUID}:1-3").encoded().hex() == (
        "0100000000000000feb03000e51811f1bf3802fc00000001010000000000000001000000000000000400000000000000"
    )


def test_sets_are_read_as_the_server_writes_them() -> None:
    text = f"{OTHER.upper()}:5,\n{UUID}:1-3:7-9:mytag:1:x:2-3"
    assert str(parse_set(text)) == f"{OTHER}:5,{UUID}:1-3:7-9,{UUID}:mytag:1,{UUID}:x:2-3"
    for wrong in ("0-1-5", f"{UUID}:1-x", "nonsense:1", f"{UUID}:Bad Tag:1"):
        with pytest.raises(SourceError, match="can't be read"):
            parse_set(wrong)


def test_owned_gtids_have_nothing_between_them() -> None:
    text = f"{UUID}:foo:77#12{OTHER}:79#14:78#1300"
    expected = {(int(UUID.replace("-", ""), 16), "foo", 77), (255, "", 78), (255, "", 79)}
    assert {(*origin, number) for origin, number in members(parse_owned(text))} == expected
    assert text_of(owned_gtids(text)) == f"{OTHER}:78-79,{UUID}:foo:77-77"
    assert parse_owned("").count() == count(owned_gtids("")) == 0


def event(kind: int, body: bytes) -> Event:
    return Event(kind, 0, 1, 100, 0, body)


def plain(number: int) -> Event:
    return event(MYSQL_GTID, b"\0" + bytes.fromhex(UUID.replace("-", "")) + number.to_bytes(8, "little"))


def test_places_rise_by_one_a_transaction_and_resume_after_it() -> None:
    track = SetTrack(parse_set(f"{UUID}:1-4"))
    track.in_file("binlog.000007")
    assert track.begin(plain(4)).known  # read before
    orders = [track.position().order]
    for number in (5, 6):
        assert not track.begin(plain(number)).known
        first, again = track.ending(500), track.ending(900)
        assert first == again  # all parts of a transaction have one position
        track.end(900)
        orders.append(track.position().order)
    opening = track.begin(event(MYSQL_TAGGED_GTID, bytes.fromhex(TAGGED_EVENT)))
    assert (opening.name, opening.id[2]) == (f"GTID {UUID}:mytag:1", 1)
    track.end(1000)
    orders.append(track.position().order)
    assert orders == [4, 5, 6, 7]
    place = parse_position(track.position())
    assert (str(place.gtids), place.file, place.offset) == (
        f"{UUID}:1-6,{UUID}:mytag:1",
        "binlog.000007",
        1000,
    )


HERE_US, FIRST_US = 1_796_000_000_123_456, 1_795_999_999_654_321
LOGICAL = b"\2" + bytes(16)


def times_of(first_us: int | None) -> bytes:
    """Of a GTID event, from its logical times on, with some of what follows."""
    here = HERE_US if first_us is None else HERE_US | 1 << 55
    first = b"" if first_us is None else first_us.to_bytes(7, "little")
    return LOGICAL + here.to_bytes(7, "little") + first + b"\xfc\x00\x01" + (90704).to_bytes(4, "little")


@pytest.mark.parametrize(
    ("times", "expected_us"),
    [(times_of(None), HERE_US), (times_of(FIRST_US), FIRST_US), (times_of(0), 0), (LOGICAL, 0), (b"", 0)],
    ids=[
        "written first here",
        "a replica's",
        "from a server that knew none",
        "none",
        "not even logical ones",
    ],
)
def test_the_time_of_the_commit_is_the_first_ones(times: bytes, expected_us: int) -> None:
    first, second = (event(MYSQL_GTID, plain(number).body + times) for number in (1, 2))
    track = SetTrack(GtidSet({}))
    track.begin(first)
    track.end(10)
    assert track.committed_us == expected_us
    raw = bytes(4) + bytes([MYSQL_GTID]) + bytes(14) + second.body
    track.committed_us = -1
    assert track.begin_next(raw) is not None
    assert track.committed_us == expected_us


def test_a_tagged_transaction_has_its_time_too() -> None:
    track = SetTrack(GtidSet({}))
    track.begin(event(MYSQL_TAGGED_GTID, bytes.fromhex(TAGGED_EVENT)))
    assert track.committed_us == 0x0660BA72527652
    replicated = bytes.fromhex(TAGGED_EVENT + "0e" + "7f00000000000100")
    track.begin(event(MYSQL_TAGGED_GTID, replicated.replace(b"mytag", b"other")))
    assert track.committed_us == 1 << 40


def test_what_breaks_the_order_is_named() -> None:
    track = SetTrack(GtidSet({}))
    track.begin(plain(1))
    track.end(10)
    with pytest.raises(SourceError, match="came twice"):
        track.begin(plain(1))
    with pytest.raises(SourceError, match="without a GTID"):
        track.begin(event(MYSQL_ANONYMOUS_GTID, b"\0" * 40))


def test_a_position_of_another_kind_of_source_is_refused() -> None:
    for token in ("0/16B3748@7", json.dumps({"gtid": "0-1-5", "file": "", "offset": 0}), "[]"):
        with pytest.raises(SourceError):
            parse_position(Position(1, token))
    place = LogPlace(parse_set(f"{UUID}:1-9"), "binlog.000001", 4)
    assert parse_position(place.position()) == place
