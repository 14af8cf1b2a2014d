"""Positions, witnesses and settings of a MariaDB source."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.adapters.sources.binlog.events.events import Event
from migrator.adapters.sources.binlog.keyset import chunk_select, compared
from migrator.adapters.sources.binlog.place.proof import Proof
from migrator.adapters.sources.binlog.place.track import Opening
from migrator.adapters.sources.binlog.place.undecided import Undecided, xid_number
from migrator.adapters.sources.mariadb.position import (
    Gtid,
    LogPlace,
    file_number,
    gtid_text,
    parse_gtids,
    parse_position,
)
from migrator.adapters.sources.mariadb.track import DomainTrack
from migrator.adapters.sources.mariadb.witness import BinlogWitness
from migrator.connections.mysql.settings import BinlogSource, default_server_id
from migrator.errors import ConfigError, SourceError
from migrator.model.position import Position
from migrator.model.table import Column, TableId, TableSchema
from tests.servers import Database, server_and_rest


def test_the_order_rises_with_every_transaction_of_any_domain() -> None:
    states = ["", "0-1-1", "0-1-2", "0-1-2,7-3-1", "0-9-3,7-3-1", "0-9-3,7-3-5"]
    positions = [LogPlace(parse_gtids(state), "binlog.000001", 4).position() for state in states]
    assert [position.order for position in positions] == [0, 1, 2, 3, 4, 8]


def test_a_position_survives_its_token() -> None:
    place = LogPlace(parse_gtids("7-3-1,0-1-2"), "binlog.000012", 345)
    assert parse_position(place.position()) == place
    assert '"0-1-2,7-3-1"' in place.position().token


@pytest.mark.parametrize("token", ["", "0/16B3748", '{"gtid": "x", "file": "", "offset": 0}', "[]", "{}"])
def test_tokens_of_other_sources_are_refused(token: str) -> None:
    with pytest.raises(SourceError):
        parse_position(Position(1, token))


def test_a_witness_contains_what_ends_at_or_before_its_place() -> None:
    witness = BinlogWitness(file_number("binlog.000012"), 500)
    assert witness.contains((12, 500))
    assert witness.contains((11, 99_999))
    assert not witness.contains((12, 501))
    assert not witness.contains((13, 4))
    assert BinlogWitness(file_number("a.b.1000000"), 4).contains((999_999, 10**9))


def test_a_witness_contains_an_xa_commit_only_once_the_server_has_let_it_go() -> None:
    witness = BinlogWitness(12, 500, settled=(12, 400), prepared=frozenset({7}))
    assert witness.contains((12, 450))
    assert witness.contains((12, 400, 8))
    assert not witness.contains((12, 450, 8))  # logged after XA RECOVER was asked
    assert not witness.contains((12, 400, 7))  # listed: it may have no rows in InnoDB yet
    assert not witness.contains((12, 501, 8))


def begun(event: Event) -> Opening:
    track = DomainTrack({})
    track.in_file("binlog.000001")
    return track.begin(event)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 9)), max_size=20), st.booleans())
def test_the_track_says_what_a_place_says(steps: list[tuple[int, int]], undecided: bool) -> None:
    remembered = Undecided("0-1-3", ("X'61',X'',1",), "abc") if undecided else Undecided()
    gtids = parse_gtids("1-1-5")
    track = DomainTrack(gtids, remembered)
    track.in_file('binlog".000007')
    for offset, (domain, step) in enumerate(steps, 4):
        last = gtids.get(domain)
        before = str(last or "")
        gtids[domain] = Gtid(domain, 1, step + (last.sequence if last else 0))
        body = gtids[domain].sequence.to_bytes(8, "little") + domain.to_bytes(4, "little") + bytes(7)
        track.begin(Event(162, 1_700_000_000 + offset, 1, 77, 0, body))
        proof = Proof(str(gtids[domain]), 1_700_000_000 + offset, before)
        expected = LogPlace(gtids, 'binlog".000007', offset, remembered, proof).position()
        ending = track.ending(offset)
        track.end(offset)
        for found in (ending, track.position()):
            assert (found.order, found.token) == (expected.order, expected.token)


def gtid_event(sequence: int) -> Event:
    return Event(162, 1_700_000_000, 1, 77, 0, sequence.to_bytes(8, "little") + bytes(4) + bytes(7))


def test_a_lower_number_is_known_only_where_the_log_is_read_again() -> None:
    again = DomainTrack(parse_gtids("0-1-9"), Undecided("0-1-3", ("X'61',X'',1",), "abc"))
    straight = DomainTrack(parse_gtids("0-1-9"))
    for track in (again, straight):
        track.in_file("binlog.000001")
    assert [again.begin(gtid_event(number)).known for number in (5, 9, 10)] == [True, True, False]
    for track, number in ((again, 5), (straight, 5), (straight, 9)):
        with pytest.raises(SourceError, match="out of order"):
            track.begin(gtid_event(number))


def test_the_log_names_the_xa_transaction_that_is_decided() -> None:
    head = (9).to_bytes(8, "little") + bytes(4)
    number = xid_number("X'61',X'62',1")
    xid = (1).to_bytes(4, "little") + b"\x01\x01ab"
    for flags, filling in ((128, b""), (128 | 2, bytes(8))):
        opening = begun(Event(162, 0, 1, 77, 0, head + bytes([flags]) + filling + xid))
        assert opening.id == (1, 77, number)
    assert begun(Event(162, 0, 1, 77, 0, head + b"\0" + bytes(6))).id == (1, 77)


def test_a_place_remembers_what_is_undecided() -> None:
    undecided = Undecided("0-1-3", ("X'61',X'',1",), "abc")
    place = LogPlace(parse_gtids("0-1-5"), "binlog.000001", 4, undecided)
    again = parse_position(place.position())
    assert again == place
    assert gtid_text(again.read_from()) == "0-1-3"
    assert gtid_text(LogPlace(parse_gtids("0-1-5"), "", 0).read_from()) == "0-1-5"


def source(**changes: object) -> BinlogSource:
    database = Database("h", 3306, "d", "u", "secret word", "mariadb")
    server, rest = server_and_rest(database, changes)
    return BinlogSource(server, **{"migration": "m", "server_id": default_server_id("m"), **rest})


def test_the_password_is_never_shown() -> None:
    assert "secret word" not in repr(source())


@pytest.mark.parametrize(
    "change",
    [{"tls": "maybe"}, {"placement": "luck"}, {"server_id": 0}, {"server_id": 2**32}, {"part_rows": 0}],
)
def test_impossible_settings_are_refused(change: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=next(iter(change))):
        source(**change)


def test_identifiers_and_values_are_quoted() -> None:
    schema = TableSchema(
        TableId("d`b", "t"),
        (Column("k`1", "string", False, "varchar(9)"), Column("n", "int64", False, "bigint(20)")),
        ("k`1", "n"),
    )
    after = compared(schema, ">", ("it's", "5"), lambda text: f"<{text}>")
    sql = chunk_select(schema, "PRIMARY", 10, [after])
    assert sql == (
        "SELECT `k``1`, `n` FROM `d``b`.`t` FORCE INDEX (`PRIMARY`) WHERE `k``1` >= <it's> AND"
        " ((`k``1` > <it's>) OR (`k``1` = <it's> AND `n` > 5)) ORDER BY `k``1`, `n` LIMIT 10"
    )
    with pytest.raises(SourceError, match="key value"):
        compared(schema, ">", ("x", "5 OR 1=1"), repr)
