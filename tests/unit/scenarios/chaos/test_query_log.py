"""Transactions of captured query logs: what is done again, and in which order."""

from __future__ import annotations

import csv
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.errors import ConfigError
from scenarios.chaos.query_log.player import counted
from scenarios.chaos.query_log.recording import Recording, read, recorded
from scenarios.chaos.query_log.schedule import Recorded, Schedule, Step
from verify.dual_read.log_files import Logged

HEAD = (
    "/usr/sbin/mariadbd, Version: 10.11.19-MariaDB-log (Debian 12). started with:\n"
    "Tcp port: 1  Unix socket: s.sock\nTime\t\t    Id Command\tArgument\n"
)


def general(file: Path, *lines: str, engine: str = "mariadb", database: str = "shop") -> Recording:
    """What is read of a general log of one session (4) in ``shop``, given as commands with arguments."""
    first = "261130 22:04:28\t     4 Connect\tme@localhost on shop using TCP/IP\n"
    (file / "general.log").write_text(HEAD + first + "".join(f"\t\t     {line}\n" for line in lines))
    return read(file / "general.log", engine, database)


def texts(found: Recording) -> list[tuple[list[str], bool]]:
    return [([step.text for step in one.steps], one.undone) for one in found.transactions]


def test_transactions_of_a_general_log(tmp_path: Path) -> None:
    found = general(
        tmp_path,
        "4 Query\tSET NAMES utf8mb4",
        "4 Query\tset time_zone = '+02:00'",
        "4 Query\tselect * from t",
        "4 Query\tinsert into t values (1, '100% \\' -- \n  it''s')",
        "4 Query\tSTART TRANSACTION",
        "4 Query\tupdate t set v = 2 where id = 1",
        "4 Prepare\tdelete from t where id = ?",
        "4 Execute\tdelete from t where id = 7",
        "4 Query\tCOMMIT",
        "4 Query\tbegin",
        "4 Query\t/*!50000 replace into t values (3) */",
        "4 Query\trollback",
        "4 Query\tset autocommit = 0",
        "4 Query\tdelete from t where id = 9",
        "4 Query\tset @@autocommit=1",
        "4 Quit\t",
    )
    assert texts(found) == [
        (["insert into t values (1, '100%% \\' -- \n  it''s')"], False),
        (["update t set v = 2 where id = 1", "delete from t where id = 7"], False),
        (["/*!50000 replace into t values (3) */"], True),
        (["delete from t where id = 9"], False),
    ]
    assert {one.settings for one in found.transactions} == {(Step("set time_zone = '+02:00'"),)}
    assert found.left_out == {}


def test_what_cannot_be_done_again_is_counted(tmp_path: Path) -> None:
    found = general(
        tmp_path,
        "4 Query\tload data local infile 'a' into table t",
        "4 Query\tinsert into t values (1)",
        "4 Query\tuse `other`",
        "4 Query\tinsert into t values (2)",
        "4 Query\tselect 1",
        "4 Init DB\tshop",
        "4 Query\txa start 'a'",
        "4 Query\tinsert into t values (4)",
        "4 Query\txa end 'a'",
        "4 Query\txa prepare 'a'",
        "4 Query\txa commit 'a'",
        "4 Query\ttruncate t",
        "4 Query\tset sql_log_bin = 0",
        "4 Query\tset global max_connections = 3",
        "4 Query\tbegin",
        "4 Query\tinsert into t values (3)",
    )
    assert texts(found) == [(["insert into t values (1)"], False)]
    assert found.transactions[0].settings == ()
    assert found.left_out == {
        "LOAD statement(s)": 1,
        "statement(s) in other databases": 1,
        "transaction(s) prepared for two phases": 1,
        "TRUNCATE statement(s)": 1,
        "transaction(s) that the log doesn't end": 1,
    }


@pytest.mark.parametrize("engine", ["mariadb", "mysql"])
def test_sessions_do_not_mix(tmp_path: Path, engine: str) -> None:
    found = general(
        tmp_path,
        "5 Connect\tme@localhost on shop using TCP/IP",
        "4 Query\tbegin",
        "4 Query\tinsert into t values (4)",
        "5 Query\tinsert into t values (5)",
        "4 Query\tinsert into t values (44)",
        "5 Quit\t",
        "4 Query\tcreate table u (id int)",
        engine=engine,
    )
    assert texts(found) == [
        (["insert into t values (5)"], False),
        (["insert into t values (4)", "insert into t values (44)"], False),
    ]
    inner, outer = found.transactions
    assert outer.begins < inner.begins <= inner.ends < outer.ends, "they overlapped, and may do so again"


def test_a_log_without_writes_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no transaction that can be done again") as raised:
        general(tmp_path, "4 Query\tinsert into t values (1)", database="another")
    assert "1 statement(s) in other databases" in str(raised.value)


def csv_log(folder: Path, *rows: tuple[str, str, str, str]) -> Recording:
    """What is read of rows (session, virtual transaction, message, detail); ``!`` begins what is refused."""
    with (folder / "log.csv").open("w", newline="") as out:
        for session, virtual, message, detail in rows:
            row = [""] * 26
            row[2], row[5], row[9], row[11], row[13], row[14] = (
                "shop",
                session,
                virtual,
                "LOG",
                message,
                detail,
            )
            if message.startswith("!"):
                row[11], row[13], row[19] = "ERROR", "no", message[1:]
            csv.writer(out).writerow(row)
    return read(folder / "log.csv", "postgresql", "shop")


def test_transactions_of_a_csvlog(tmp_path: Path) -> None:
    insert = "insert into t values ($1, $2, '$1 100%', $$ $2 $$) -- $1\n"
    found = csv_log(
        tmp_path,
        ("a", "1/1", "statement: BEGIN", ""),
        ("a", "1/1", f"execute <unnamed>: {insert}", "Parameters: $1 = 'it''s', $2 = NULL"),
        ("a", "1/1", "statement: savepoint s", ""),
        ("a", "1/1", "statement: insert into t values (9)", ""),
        ("a", "1/1", "!insert into t values (9)", ""),
        ("a", "1/1", "statement: rollback to savepoint s", ""),
        ("a", "1/1", "statement: COMMIT", ""),
        ("a", "1/2", "execute s1: update t set v = $1", "parameters: $1 = '5'"),
        ("a", "1/2", "execute s1: update t set w = $1", "parameters: $1 = '6'"),
        ("a", "1/3", "statement: delete from t; delete from u", ""),
        ("a", "1/4", "statement: delete from gone", ""),
        ("a", "1/4", "!delete from gone", ""),
        ("a", "1/5", "statement: begin", ""),
        ("a", "1/5", "statement: delete from t", ""),
        ("a", "1/5", "statement: select 1/0", ""),
        ("a", "1/5", "!select 1/0", ""),
        ("a", "1/5", "statement: commit", ""),
        ("a", "1/6", "statement: copy t from stdin", ""),
        ("a", "1/7", "duration: 0.2 ms  statement: with x as (select 1) insert into t select * from x", ""),
        ("a", "1/8", "disconnection: session time: 0:00:01", ""),
    )
    first = "insert into t values (%s, %s, '$1 100%%', $$ $2 $$) -- $1\n"
    assert [step.text for step in found.transactions[0].steps] == [
        first.strip(),
        "savepoint s",
        "rollback to savepoint s",
    ]
    assert found.transactions[0].steps[0].values == ("it's", None)
    assert texts(found)[1:] == [
        (["update t set v = %s", "update t set w = %s"], False),
        (["delete from t", "delete from u"], False),
        (["delete from t"], True),
        (["with x as (select 1) insert into t select * from x"], False),
    ]
    assert not found.transactions[0].undone
    assert found.left_out == {"statement(s) that the server refused": 2, "COPY statement(s)": 1}


def test_bytes_that_are_no_text_come_again_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "general.log").write_bytes(
        HEAD.encode() + b"\t\t     4 Connect\tme@localhost on shop\n"
        b"\t\t     4 Query\tinsert into t values (_binary'\xff\r\n\xfe')\n\t\t     4 Quit\t\n"
    )
    [found] = read(tmp_path / "general.log", "mysql", "shop").transactions
    assert (
        found.steps[0].text.encode(errors="surrogateescape")
        == b"insert into t values (_binary'\xff\r\n\xfe')"
    )


spans = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 8)), max_size=12)


@given(spans, st.integers(1, 4), st.randoms())
def test_what_ended_before_is_over_before_the_next_begins(
    drawn: list[tuple[int, int]], clients: int, dice: random.Random
) -> None:
    transactions = [Recorded("s", begin, begin + length, (), (Step("x"),)) for begin, length in drawn]
    schedule, under_way, over = Schedule(transactions), list[Recorded](), list[Recorded]()
    while len(over) < len(transactions):
        found = schedule.startable() if len(under_way) < clients else None
        if found is not None:
            before = [one for one in transactions if one.ends < found.begins]
            assert all(any(one is other for other in over) for one in before)
            under_way.append(found)
        if under_way and (found is None or dice.random() < 0.5):
            ended = under_way.pop(dice.randrange(len(under_way)))
            over.append(ended)
            schedule.ended(ended)
        else:
            assert found is not None, "nobody may begin, and nobody is under way"
    assert schedule.startable() is None


def test_those_that_overlapped_overlap_again() -> None:
    schedule = Schedule(
        [Recorded("a", 1, 5, (), ()), Recorded("b", 2, 3, (), ()), Recorded("c", 4, 6, (), ())]
    )
    first, second = schedule.startable(), schedule.startable()
    assert (first and first.session, second and second.session) == ("a", "b")
    assert schedule.startable() is None, "c began when b was over"
    assert second is not None
    schedule.ended(second)
    third = schedule.startable()
    assert third is not None
    assert third.session == "c"


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ('insert into "Orders" (id) values (1)', ("Orders", "insert")),
        ("INSERT INTO public.t VALUES (1)", ("t", "insert")),
        ("insert into T select 1", ("t", "insert")),
        ("insert into t values (1) on conflict do nothing", None),
        ("insert into t values (1) on duplicate key update v = 1", None),
        ("insert ignore into t values (1)", None),
        ("update t as x set v = 1", ("t", "update")),
        ("update t, u set t.v = 1", None),
        ("delete from `t` where id = 1", ("t", "delete")),
        ("delete t from t join u", None),
        ("delete from elsewhere", None),
        ("with x as (select 1) delete from t", None),
    ],
)
def test_only_plain_statements_are_counted(statement: str, place: tuple[str, str] | None) -> None:
    assert counted(statement, {"t", "Orders", "u"}) == place


def test_entries_without_a_database_count() -> None:
    found = recorded([Logged("delete from t", session="1")], "mysql", "shop")
    assert texts(found) == [(["delete from t"], False)]
