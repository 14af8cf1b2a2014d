"""A MySQL or MariaDB target's transaction: lost commits, ended sessions, frozen leaders, deadlocks, least
rights."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pyarrow as pa
import pymysql
import pytest

from migrator.adapters.targets.mysql.session import Session
from migrator.adapters.targets.mysql.target import MysqlTargetWriter
from migrator.errors import ConnectionFailed, FencedError, TargetError
from migrator.schema import MYSQL_LEDGER
from tests.integration.target_bench_mysql import MIGRATION, Bench, bench, ints, settings_of
from tests.servers import Database

pytestmark = pytest.mark.integration

TABLE = "CREATE TABLE t (id int PRIMARY KEY)"


@pytest.fixture(params=["new_maria", "new_mysql"])
def new(request: pytest.FixtureRequest) -> Database:
    database: Database = request.getfixturevalue(request.param)
    return database


@pytest.fixture
def poor(new: Database) -> Iterator[Database]:
    """A user who may only log in."""
    name = f"poor_{new.database[-8:]}"
    new.execute(f"CREATE USER '{name}'@'%' IDENTIFIED BY 'poor'", f"GRANT USAGE ON *.* TO '{name}'@'%'")
    yield Database(new.host, new.port, new.database, name, "poor", new.kind)
    new.execute(f"DROP USER '{name}'@'%'")


def row(number: int) -> pa.Table:
    return pa.table(ints("id", number))


def stored(database: Database) -> list[int]:
    return [int(found[0]) for found in database.query("SELECT id FROM t ORDER BY id")]


class LostAnswer:
    """The connection is cut right before the COMMIT is sent, or right after the server has done it."""

    def __init__(self, it: Bench, sent: bool):
        session = it.target._session
        assert session is not None
        connection, execute = session._connection, session._cursor.execute

        def cut(statement: str, parameters: object = None) -> int:
            if statement == "COMMIT":
                if sent:
                    execute(statement)
                connection._sock.shutdown(socket.SHUT_RDWR)
            return int(execute(statement, parameters))

        session._cursor.execute = cut


def test_a_commit_whose_answer_is_lost_is_looked_up(new: Database) -> None:
    with bench(new, TABLE) as it:
        part = it.part("t", after=row(1))
        LostAnswer(it, sent=True)
        it.apply(part)  # no error: the ledger says that it happened
        assert stored(new) == [1]
        assert it.ledger_segment() == 1
        it.apply(it.part("t", after=row(2)))
        assert it.ledger_segment() == 2


def test_a_commit_that_never_arrived_is_reported_and_can_be_tried_again(new: Database) -> None:
    with bench(new, TABLE) as it:
        part = it.part("t", after=row(1))
        LostAnswer(it, sent=False)
        with pytest.raises(ConnectionFailed) as raised:
            it.apply(part)
        assert raised.value.retryable
        assert stored(new) == []
        it.apply(part)
        assert stored(new) == [1]


def test_a_batch_that_is_there_does_not_hide_that_another_leads(new: Database) -> None:
    def replaced(point: str) -> None:
        if point == "target.unknown":
            MysqlTargetWriter(settings_of(new)).open(2)

    with bench(new, TABLE) as it:
        it.target._step = replaced
        part = it.part("t", after=row(1))
        LostAnswer(it, sent=True)
        with pytest.raises(FencedError, match="epoch 2"):
            it.apply(part)
        assert stored(new) == [1]


def test_a_frozen_leader_holding_the_ledger_is_ended_and_a_zombie_ends_nobody(new: Database) -> None:
    with bench(new, TABLE) as it:
        frozen = Session(it.settings)
        it.target.close()
        while not is_named(frozen, 1):  # the server ends a closed session, and frees its lock, a moment later
            frozen.begin(1)
        frozen.rows(f"SELECT * FROM {MYSQL_LEDGER} FOR UPDATE")
        frozen.run("INSERT INTO t VALUES (666)")
        with pytest.raises(FencedError):
            MysqlTargetWriter(settings_of(new, lock_wait_s=1)).open(0)
        assert frozen.rows("SELECT id FROM t") == [(666,)], "a zombie has ended the leader"
        leader = MysqlTargetWriter(settings_of(new, lock_wait_s=1))
        assert leader.open(2).epoch == 2
        with pytest.raises(Exception, match=r"(?i)lost|killed|closed"):
            frozen.rows("SELECT 1")
        assert stored(new) == []
        leader.close()


@pytest.mark.slow
def test_an_ended_leader_may_roll_back_for_longer_than_a_lock_is_waited_for(new: Database) -> None:
    """KILL is answered at once; the rows of a large transaction are then taken back one by one, under its locks."""
    digits = "(" + " UNION ALL ".join(f"SELECT {n} AS d" for n in range(10)) + ")"
    rows = ", ".join(f"{digits} AS d{place}" for place in range(6))
    number = " + ".join(f"d{place}.d * {10**place}" for place in range(6))
    with bench(new, TABLE) as it:
        frozen = Session(it.settings)
        it.target.close()
        while not is_named(frozen, 1):  # the server ends a closed session, and frees its lock, a moment later
            frozen.begin(1)
        frozen.rows(f"SELECT * FROM {MYSQL_LEDGER} FOR UPDATE")
        frozen.run(f"INSERT INTO t SELECT {number} FROM {rows}")
        leader = MysqlTargetWriter(settings_of(new, lock_wait_s=1))
        assert leader.open(2).epoch == 2
        assert stored(new) == []
        leader.close()


def is_named(session: Session, epoch: int) -> bool:
    """Whether a newer leader would find this session as that of ``epoch``."""
    holder = session.one("SELECT IS_USED_LOCK(%s)", [session._settings.lock_name(epoch)])[0]
    return holder is not None and int(holder) == session.id


def test_a_transaction_that_was_ended_in_between_is_never_committed_by_half(new: Database) -> None:
    """A statement that commits by itself, put where a trigger with a procedure might have one."""
    with bench(new, TABLE, "CREATE TABLE other (id int)") as it:

        def commits(point: str) -> None:
            if point == "target.merged" and it.target._session is not None:
                it.target._session.run("ROLLBACK")

        it.target._step = commits
        with pytest.raises(TargetError, match="ended before its end"):
            it.apply(it.part("t", after=row(1)))
        assert (stored(new), it.ledger_segment()) == ([], 0)


def test_a_deadlock_is_retryable_and_leaves_nothing(new: Database) -> None:
    """Each waits for a row of the other; the other has written more, so the server ends the batch's transaction."""
    with bench(new, TABLE, "INSERT INTO t VALUES (1), (2), (3)", "CREATE TABLE u (id int PRIMARY KEY)") as it:
        other = new.connect(autocommit=False)
        cursor = other.cursor()
        cursor.execute("INSERT INTO u VALUES " + ", ".join(f"({n})" for n in range(200)))
        cursor.execute("SELECT * FROM t WHERE id = 3 FOR UPDATE")
        waiting = threading.Thread(target=_quietly, args=(cursor, f"SELECT * FROM {MYSQL_LEDGER} FOR UPDATE"))

        def cross(point: str) -> None:
            if point == "target.begun":
                waiting.start()

        it.target._step = cross
        part = it.part("t", before=pa.table(ints("id", 3)), strict=False)
        with pytest.raises(TargetError) as raised:
            it.apply(part)
        assert raised.value.retryable, str(raised.value)
        waiting.join(60)
        other.rollback()
        other.close()
        it.target._step = lambda point: None
        assert (stored(new), it.ledger_segment()) == ([1, 2, 3], 0)
        it.apply(part)
        assert (stored(new), it.ledger_segment()) == ([1, 2], 1)


def test_triggers_are_seen_by_a_right_of_a_role_too(new: Database, poor: Database) -> None:
    role, user = f"r_{poor.user}", f"'{poor.user}'@'%'"
    new.execute(TABLE, f"GRANT SELECT ON `{new.database}`.t TO {user}", f"CREATE ROLE {role}")

    def warned() -> bool:
        found = MysqlTargetWriter(settings_of(poor)).preflight(["t"])
        return any(one.check == "trigger_rights" for one in found)

    try:
        new.execute(f"GRANT TRIGGER ON `{new.database}`.t TO {role}", f"GRANT {role} TO {user}")
        assert warned(), "the role isn't active"
        of = "FOR" if new.kind == "mariadb" else "TO"
        new.execute(f"SET DEFAULT ROLE {role} {of} {user}")
        assert not warned()
    finally:
        new.execute(f"DROP ROLE {role}")


def _quietly(cursor: pymysql.cursors.Cursor, statement: str) -> None:
    try:
        cursor.execute(statement)
    except pymysql.err.MySQLError:
        return


def test_the_remedies_of_preflight_are_all_that_a_poor_user_needs(new: Database, poor: Database) -> None:
    new.execute(TABLE, "CREATE TABLE m (id int PRIMARY KEY) ENGINE=MyISAM", "CREATE TABLE k (id int)")
    rich = {one.check for one in MysqlTargetWriter(settings_of(new)).preflight(["t", "m", "k", "nowhere"])}
    assert rich == {"engine", "key", "table"}
    grants = f"GRANT SELECT ON `{new.database}`.t TO '{poor.user}'@'%'"
    new.execute(grants)
    found = MysqlTargetWriter(settings_of(poor)).preflight(["t"])
    assert {one.check for one in found} == {
        "temporary",
        "grants",
        "trigger_rights",
        "control_tables",
    }
    assert {"the user lacks INSERT, UPDATE, DELETE"} == {
        one.problem for one in found if one.check == "grants"
    }
    assert sum(one.check == "control_tables" for one in found) == 3
    new.execute(*(one.remedy for one in found))
    MysqlTargetWriter(settings_of(poor)).open(1)
    with bench(poor, "DO 1") as it:
        it.apply(it.part("t", after=row(1)))
        it.apply(it.part("t", before=row(1)))
    assert MysqlTargetWriter(settings_of(poor)).preflight(["t"]) == []


def test_an_unreachable_server_is_named_without_the_password(new_maria: Database) -> None:
    with socket.create_server(("127.0.0.1", 0)) as nobody:
        port = nobody.getsockname()[1]
    settings = settings_of(new_maria, port=port, password="s3cret")
    with pytest.raises(ConnectionFailed) as raised:
        MysqlTargetWriter(settings).preflight(["t"])
    assert raised.value.retryable
    assert str(port) in str(raised.value)
    assert "s3cret" not in str(raised.value) + repr(settings)


def test_a_ledger_of_a_newer_version_or_another_epoch_is_refused_by_name(new_maria: Database) -> None:
    with bench(new_maria, TABLE) as it:
        part = it.part("t", after=row(1))
        new_maria.execute(f"UPDATE {MYSQL_LEDGER} SET epoch = 0")
        with pytest.raises(TargetError, match="epoch fell to 0"):
            it.apply(part)
        new_maria.execute(f"UPDATE {MYSQL_LEDGER} SET format = 99")
        with pytest.raises(TargetError, match="format 99"):
            MysqlTargetWriter(it.settings).open(2)
        new_maria.execute(f"DELETE FROM {MYSQL_LEDGER}")
        with pytest.raises(TargetError, match=f"no row for migration {MIGRATION}"):
            it.apply(part)
