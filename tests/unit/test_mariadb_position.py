"""Positions, witnesses and settings of a MariaDB source."""

from __future__ import annotations

import pytest

from migrator.adapters.mariadb.position import LogPlace, file_number, parse_gtids, parse_position
from migrator.adapters.mariadb.witness import BinlogWitness
from migrator.binlog.keyset import chunk_select, compared
from migrator.binlog.settings import BinlogSource, default_server_id
from migrator.errors import ConfigError, SourceError
from migrator.model.position import Position
from migrator.model.table import Column, TableId, TableSchema


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


def source(**changes: object) -> BinlogSource:
    options: dict[str, object] = {
        "host": "h",
        "port": 3306,
        "database": "d",
        "user": "u",
        "password": "secret word",
        "tls": "prefer",
        "migration": "m",
        "server_id": default_server_id("m"),
    }
    return BinlogSource(**{**options, **changes})  # type: ignore[arg-type]


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
