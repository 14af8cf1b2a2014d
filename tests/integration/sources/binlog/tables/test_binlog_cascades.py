"""Foreign keys that change captured rows below the log: reading stops at the parent, before that is delivered."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from migrator.adapters.sources.binlog.statements.foreign_keys import ForeignKey, read_foreign_keys
from migrator.adapters.sources.binlog.transactions.cascade_guard import CascadeGuard
from migrator.adapters.sources.binlog.transactions.log_reader import BinlogReader
from migrator.embedded.process import scratch_directory
from migrator.errors import GapError, SchemaError, SourceError
from tests.integration.binlog_engine import MARIADB, MYSQL, BinlogEngine
from tests.integration.binlog_reading import Read, read_to, read_until, source_of
from tests.integration.sources.binlog_preflight import found_besides_accounts, obstacles
from tests.servers import (
    MYSQL_VERSION,
    Database,
    MariaDBServer,
    embedded_mysql,
    fresh_database,
    unpacked_mysql,
)

pytestmark = pytest.mark.integration


@pytest.fixture(scope="session")
def native_mysql() -> Iterator[Database]:
    """A MySQL whose cascades happen inside InnoDB, as those of all versions before 9.6 do."""
    unpacked_mysql()
    # Without the setting all versions before 9.6 do it so.
    settings = {"innodb-native-foreign-keys": "ON"} if MYSQL_VERSION is None else {}
    with scratch_directory() as folder, embedded_mysql(folder / "native", settings=settings) as server:
        yield Database(server.host, server.port, "mysql", "root", "", "mysql")


@pytest.fixture
def family(request: pytest.FixtureRequest, engine: BinlogEngine) -> Iterator[Database]:
    """Parents, children that are captured, and a table between a grandparent and a captured grandchild."""
    server = request.getfixturevalue("mariadb" if engine is MARIADB else "native_mysql")
    if engine is MYSQL:
        server = MariaDBServer(server, None)
    with fresh_database(server, "old") as database:
        database.execute(
            "CREATE TABLE grand (id int PRIMARY KEY)",
            "CREATE TABLE middle (id int PRIMARY KEY, g int,"
            " FOREIGN KEY (g) REFERENCES grand (id) ON DELETE CASCADE)",
            "CREATE TABLE parent (id int PRIMARY KEY, note varchar(20))",
            "CREATE TABLE child (id int PRIMARY KEY, p int, m int, v varchar(20),"
            " CONSTRAINT by_parent FOREIGN KEY (p) REFERENCES parent (id) ON DELETE SET NULL ON UPDATE CASCADE,"
            " CONSTRAINT by_middle FOREIGN KEY (m) REFERENCES middle (id) ON DELETE CASCADE)",
            "INSERT INTO grand VALUES (1), (2)",
            "INSERT INTO middle VALUES (1, 1), (2, 2)",
            "INSERT INTO parent VALUES (1, 'a'), (2, 'b'), (3, 'childless')",
            "INSERT INTO child VALUES (1, 1, 1, 'x'), (2, 2, 2, 'y')",
        )
        yield database


@pytest.fixture
def log(engine: BinlogEngine, family: Database) -> Iterator[BinlogReader]:
    reader, _ = engine.started(source_of(family), "child")
    yield reader
    reader.close()


TRIGGER = (
    "CREATE TRIGGER tr BEFORE DELETE ON parent FOR EACH ROW"
    " UPDATE `{0}`.`child` SET `p` = NULL WHERE `p` = OLD.`id`"
)


@pytest.mark.parametrize(
    ("statement", "constraint"),
    [
        ("DELETE FROM parent WHERE id = 1", "by_parent"),
        ("UPDATE parent SET id = 9 WHERE id = 1", "by_parent"),
        ("DELETE FROM middle WHERE id = 2", "by_middle"),
        ("DELETE FROM grand WHERE id = 1", "by_middle"),
        ("REPLACE INTO parent VALUES (1, 'replaced')", "by_parent"),
    ],
)
def test_a_change_that_may_cascade_stops_before_it_is_delivered(
    engine: BinlogEngine, family: Database, log: BinlogReader, statement: str, constraint: str
) -> None:
    family.execute("UPDATE child SET v = 'before' WHERE id = 2")
    family.execute(statement)
    family.execute("UPDATE child SET v = 'after' WHERE id = 2")
    read = Read()
    with pytest.raises(SourceError, match="a foreign key may have changed captured rows") as stopped:
        read_until(log, lambda _: False, read)
    assert [change.after[3] for change in read.changes() if change.after] == ["before"]
    assert f"child constraint {constraint}" in str(stopped.value)
    assert engine.gtid in str(stopped.value)
    # that is right: the log never says what became of the children
    log.start(read.parts()[-1].position)
    with pytest.raises(SourceError, match="a foreign key may have changed captured rows"):
        read_until(log, lambda _: False)


def test_without_the_guard_children_differ_for_good(
    engine: BinlogEngine, family: Database, log: BinlogReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the guard is for: the children changed, and the log never said so."""
    monkeypatch.setattr(CascadeGuard, "check", lambda self, event: None)
    family.execute("DELETE FROM parent WHERE id = 1", "DELETE FROM grand WHERE id = 2")
    assert read_to(log, engine.end(source_of(family))).changes() == []
    assert family.query("SELECT id, p FROM child") == [(1, None)]


def test_changes_that_cannot_cascade_go_on(engine: BinlogEngine, family: Database, log: BinlogReader) -> None:
    family.execute(
        "UPDATE parent SET note = 'c', id = id WHERE id = 1",
        "INSERT INTO parent VALUES (4, 'd')",
        "UPDATE middle SET g = 2 WHERE id = 1",
        "UPDATE child SET p = 4, m = NULL WHERE id = 1",
    )
    with family.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET foreign_key_checks = 0")
        cursor.execute("DELETE FROM parent WHERE id = 3")
    read = read_to(log, engine.end(source_of(family)))
    assert [change.after for change in read.changes()] == [("1", "4", None, "x")]


def test_a_trigger_that_does_what_the_action_does_is_relied_on(
    engine: BinlogEngine, family: Database
) -> None:
    family.execute(TRIGGER.format(family.database))
    source = source_of(family)
    begin_rows = {("1",): ("1", "1", "1", "x"), ("2",): ("2", "2", "2", "y")}
    log, (schema,) = engine.started(source, "child")
    family.execute("DELETE FROM parent WHERE id IN (1, 3)")
    read = read_to(log, engine.end(source))
    rows = begin_rows | fold_changes(read)
    assert rows[("1",)] == ("1", None, "1", "x")
    (chunk,) = engine.dump(source, schema, 10)
    assert chunk.rows["p"].to_pylist() == [None, 2]
    family.execute("DROP TRIGGER tr", "DELETE FROM parent WHERE id = 2")
    with pytest.raises(SourceError, match="a foreign key may have changed captured rows"):
        read_until(log, lambda _: False)
    log.close()


def fold_changes(read: Read) -> dict[tuple[object, ...], tuple[object, ...]]:
    return {(change.after[0],): change.after for change in read.changes() if change.after}


def test_keys_changed_while_nobody_read_are_a_gap(
    engine: BinlogEngine, family: Database, log: BinlogReader
) -> None:
    family.execute("UPDATE child SET v = 'before' WHERE id = 2")
    place = read_to(log, engine.end(source_of(family))).parts()[-1].position
    log.close()
    family.execute("DELETE FROM parent WHERE id = 1", "ALTER TABLE child DROP FOREIGN KEY by_parent")
    with pytest.raises(GapError, match="were changed while nobody read"):
        log.start(place)


def test_keys_changed_while_the_log_is_read_are_followed_or_stop_by_name(
    engine: BinlogEngine, family: Database, log: BinlogReader
) -> None:
    family.execute("ALTER TABLE child DROP FOREIGN KEY by_parent", "DELETE FROM parent WHERE id = 1")
    place = read_to(log, engine.end(source_of(family))).records[-1].position  # type: ignore[union-attr]
    log.start(place)  # the place remembers that the key is gone
    family.execute(
        "ALTER TABLE middle ADD COLUMN p int, ADD FOREIGN KEY (p) REFERENCES parent (id) ON DELETE CASCADE"
    )
    with pytest.raises(SchemaError, match="what cascades now isn't known"):
        read_until(log, lambda _: False)


@pytest.mark.parametrize(
    "statement", ["RENAME TABLE parent TO renamed", "ALTER TABLE middle RENAME TO renamed"]
)
def test_a_watched_table_of_another_name_stops_by_name(
    family: Database, log: BinlogReader, statement: str
) -> None:
    family.execute(statement)
    with pytest.raises(SchemaError, match="what cascades now isn't known"):
        read_until(log, lambda _: False)


def test_preflight_tells_of_them_with_the_trigger_that_helps(engine: BinlogEngine, family: Database) -> None:
    source = source_of(family)
    assert obstacles(engine, family, "child") == {}
    hints = {finding.subject: finding for finding in found_besides_accounts(engine, family, "child")}
    name = family.database
    assert set(hints) == {
        f"{name}.child constraint by_parent",
        f"{name}.child constraint by_middle",
        f"{name}.middle constraint middle_ibfk_1",
    }
    statement = hints[f"{name}.child constraint by_parent"].remedy.partition(": ")[2].partition(";")[0]
    family.execute(statement)
    left = engine.catalog(source).preflight(["child"])
    assert [
        finding.subject for finding in left if "by_parent" in finding.subject and "TRIGGER" in finding.remedy
    ] == []
    assert found_besides_accounts(engine, family, "parent") == []


def test_parents_in_another_database_are_refused(engine: BinlogEngine, family: Database) -> None:
    name = family.database
    family.execute(
        f"CREATE DATABASE {name}_b",
        f"CREATE TABLE {name}_b.far (id int PRIMARY KEY)",
        "ALTER TABLE child ADD q int",
        f"ALTER TABLE child ADD CONSTRAINT far FOREIGN KEY (q) REFERENCES {name}_b.far (id) ON DELETE CASCADE",
    )
    try:
        assert list(obstacles(engine, family, "child")) == [
            f"foreign key cascade: {name}.child constraint far"
        ]
    finally:
        family.execute("ALTER TABLE child DROP FOREIGN KEY far", f"DROP DATABASE {name}_b")


def test_a_login_that_only_reads_sees_what_foreign_keys_do(
    family: Database,
) -> None:
    """MariaDB shows a key's actions only to those who may write: a poor login's guard was blind."""
    user = f"reads_{family.database[-8:]}"
    captured = [name for (name,) in family.query("SHOW TABLES")]
    family.execute(f"CREATE USER {user} IDENTIFIED BY 'reads'")
    family.execute(*(f"GRANT SELECT ON `{family.database}`.`{name}` TO {user}" for name in captured))
    try:
        poor = replace(family, user=user, password="reads")

        def seen(database: Database) -> list[ForeignKey]:
            with database.connect() as connection:
                return read_foreign_keys(connection, database.database)

        assert seen(poor) == seen(family)
        assert any(key.acts() for key in seen(poor))
    finally:
        family.execute(f"DROP USER {user}")
