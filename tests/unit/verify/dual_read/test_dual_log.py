"""Captured query logs: which statements a pair describes, and with which values; nothing is run."""

from __future__ import annotations

import csv
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.errors import ConfigError
from verify.dual_read.log_files import Logged, read_log
from verify.dual_read.queries import QueryPair, pairs_of
from verify.dual_read.query_log import Template, match_log

TEMPLATE = "SELECT name FROM person WHERE id = :id AND name <> :name"
GENERAL = (
    "/usr/sbin/mysqld, Version: 8.4.0. started with:\n"
    "Tcp port: 3306  Unix socket: /x.sock\n"
    "Time                 Id Command    Argument\n"
    "2026-01-01T10:00:00.000001Z\t   12 Connect\tme@localhost on shop using TCP/IP\n"
    "2026-01-01T10:00:00.000002Z\t   12 Query\tselect name\n"
    "  FROM person /* who */\n WHERE id = 5 AND name <> 'O\\'Neil'\n"
    "2026-01-01T10:00:00.000003Z\t   12 Query\tDELETE FROM person WHERE id = 5\n"
    "2026-01-01T10:00:00.000004Z\t   12 Prepare\tSELECT name FROM person WHERE id = ? AND name <> ?\n"
    "2026-01-01T10:00:00.000005Z\t   12 Execute\tSELECT name FROM person WHERE id = -6 AND name <> ''''\n"
    "2026-01-01T10:00:00.000006Z\t   12 Query\tSELECT something_else\n"
    "2026-01-01T10:00:00.000007Z\t   12 Quit\t\n"
)
MARIA = (
    "Time\t\t    Id Command\tArgument\n"
    "260101 10:00:00\t     7 Query\tSELECT name FROM person WHERE id = 1.50 AND name <> NULL\n"
    "\t\t     7 Query\tSELECT name FROM person WHERE id = 2 AND name <> 'a''b'\n"
)


def pairs() -> tuple[QueryPair, ...]:
    entry = {"name": "who", "old": TEMPLATE, "new": TEMPLATE, "log": TEMPLATE}
    return pairs_of({"format": 1, "queries": [entry]}, "x")


def matched(file: Path, form: str) -> tuple[list[dict[str, object]], int, int]:
    found = match_log(read_log(file, form), pairs(), form, 100)
    return found.parameters["who"], found.statements, found.unmatched


def test_the_general_log_of_mysql(tmp_path: Path) -> None:
    (tmp_path / "general.log").write_text(GENERAL)
    found, statements, unmatched = matched(tmp_path / "general.log", "mysql")
    assert found == [{"id": 5, "name": "O'Neil"}, {"id": -6, "name": "'"}]
    assert (statements, unmatched) == (3, 1)


def test_the_general_log_of_mariadb(tmp_path: Path) -> None:
    (tmp_path / "general.log").write_text(MARIA)
    found, *_ = matched(tmp_path / "general.log", "mysql")
    assert found == [{"id": Decimal("1.50"), "name": None}, {"id": 2, "name": "a'b"}]


def test_csvlog_of_postgresql(tmp_path: Path) -> None:
    def row(message: str, detail: str = "") -> list[str]:
        return ["2026-01-01 10:00:00 UTC", *[""] * 12, message, detail, *[""] * 11]

    rows = [
        row("connection received"),
        row("statement: SELECT name FROM person\nWHERE id = 5 AND name <> 'C:\\x'"),
        row("duration: 0.4 ms  statement: SELECT name FROM person WHERE id = 6 AND name <> E'a\\'b'"),
        row(
            "execute <unnamed>: SELECT name FROM person WHERE id = $1 AND name <> $2",
            "Parameters: $1 = '7', $2 = 'O''N'",
        ),
        row(
            "execute q1: SELECT name FROM person WHERE id = $1 AND name <> $2",
            "parameters: $1 = '8', $2 = NULL",
        ),
        row("statement: UPDATE person SET name = ''"),
    ]
    with (tmp_path / "log.csv").open("w", newline="") as out:
        csv.writer(out).writerows(rows)
    found, statements, unmatched = matched(tmp_path / "log.csv", "postgresql")
    assert found == [
        {"id": 5, "name": "C:\\x"},
        {"id": 6, "name": "a'b"},
        {"id": "7", "name": "O'N"},
        {"id": "8", "name": None},
    ]
    assert (statements, unmatched) == (4, 0)


def test_a_log_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="can't be read"):
        list(read_log(tmp_path / "none.log", "mysql"))


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT name FROM person WHERE id = 5 AND name <> 'x' LIMIT 1",
        "SELECT name FROM person WHERE id = 5",
        "SELECT name FROM person WHERE id = 5 + 1 AND name <> 'x'",
        "SELECT name FROM person WHERE id = (SELECT 1) AND name <> 'x'",
        "SELECT name FROM Person2 WHERE id = 5 AND name <> 'x'",
        "SELECT \"Name\" FROM person WHERE id = 5 AND name <> 'x'",
        "SELECT name FROM person WHERE id = $1 AND name <> $2",
    ],
)
def test_what_is_not_the_template_word_by_word_does_not_match(statement: str) -> None:
    assert Template(TEMPLATE, "mysql").match(Logged(statement)) is None


def test_one_name_is_one_value() -> None:
    template = Template("SELECT 1 FROM t WHERE a = :x OR b = :x", "mysql")
    assert template.match(Logged("SELECT 1 FROM t WHERE a = 3 OR b = 3")) == {"x": 3}
    assert template.match(Logged("SELECT 1 FROM t WHERE a = 3 OR b = 4")) is None


@given(
    number=st.integers(),
    text=st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\\"), max_size=20),
)
def test_any_literal_comes_back_as_it_was(number: int, text: str) -> None:
    quoted = text.replace("'", "''")
    statement = f"select NAME from person where id={number} and name<>'{quoted}'"
    for form in ("mysql", "postgresql"):
        assert Template(TEMPLATE, form).match(Logged(statement)) == {"id": number, "name": text}
