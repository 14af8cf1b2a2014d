"""A migration played by hand: one writer on the old database, one applier that follows it at its own pace.

The writer commits one transaction at a time and notes the log's place after it, so the applier can commit
rows with a ledger that is true: the target is the old database as of that place, as a faultless pipeline
would leave it.
"""

from __future__ import annotations

import json
import random
import threading
from collections import deque
from typing import Any

from migrator.model.codecs.codec import checkpoint_to_json
from migrator.model.position import Position
from migrator.model.progress import Checkpoint, TableDump
from migrator.model.table import TableId
from tests.integration.judged import settings_of
from tests.servers import Database
from verify.dual_read.engine_side import OldEngine, engine_of
from verify.readers.snapshot import LogPlace

MIGRATION = "dual"
ROWS = 20
OLD = (
    "CREATE TABLE person (id int PRIMARY KEY, name varchar(40), visits int NOT NULL, price decimal(10,4),"
    " active int NOT NULL)",
    "CREATE TABLE elsewhere (id int PRIMARY KEY)",
)
NEW = "CREATE TABLE client (id int PRIMARY KEY, full_name varchar(40), seen int, price decimal(10,4), active int)"
SELECT_OLD = "SELECT id, name, visits, price, active FROM person WHERE id = :id"
SELECT_NEW = "SELECT id, full_name, seen, price, active FROM client WHERE id = :id"
_LEDGER_PG = (
    "CREATE SCHEMA IF NOT EXISTS migrator",
    "CREATE TABLE migrator.ledger (migration text PRIMARY KEY, epoch bigint NOT NULL, segment bigint NOT NULL,"
    " position_order numeric(39,0), position_token text, checkpoint jsonb)",
)
_LEDGER_MYSQL = (
    "CREATE TABLE migrator_ledger (migration varchar(40) PRIMARY KEY, epoch bigint NOT NULL, segment bigint NOT NULL,"
    " position_order decimal(39,0), position_token text, checkpoint json)",
)


WRONG, SHOUTED = 9, 15
"""Rows that ``spoil`` makes wrong: a number, and the case of a text."""
_WRONG_ROWS = (
    f"UPDATE client SET seen = 1 WHERE id = {WRONG}",
    f"UPDATE client SET full_name = UPPER(full_name) WHERE id = {SHOUTED}",
)
_SPOIL_PG = (
    f"""CREATE FUNCTION spoil() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        NEW.seen := NEW.seen + (NEW.id = {WRONG})::int;
        IF NEW.id = {SHOUTED} THEN NEW.full_name := upper(NEW.full_name); END IF;
        RETURN NEW; END $$""",
    "CREATE TRIGGER spoil BEFORE INSERT ON client FOR EACH ROW EXECUTE FUNCTION spoil()",
)
_SPOIL_MYSQL = (
    f"CREATE TRIGGER spoil BEFORE INSERT ON client FOR EACH ROW SET NEW.seen = NEW.seen + (NEW.id = {WRONG}),"
    f" NEW.full_name = IF(NEW.id = {SHOUTED}, UPPER(NEW.full_name), NEW.full_name)",
)


class Stream:
    """Both databases. ``start`` lets writer and applier run; ``write`` and ``apply`` do one step each."""

    def __init__(self, old: Database, new: Database, seed: int = 1):
        self.old, self.new = old, new
        self._chance = random.Random(seed)
        self._engine = engine_of(settings_of(old), 2)
        self._places = OldEngine(self._engine)
        self._waiting: deque[tuple[list[tuple[Any, ...]], LogPlace]] = deque()
        self._stop, self._threads = (
            threading.Event(),
            [
                threading.Thread(target=self._write_on),
                threading.Thread(target=self._apply_on),
            ],
        )
        self.failure: BaseException | None = None
        self.writes = 0
        self._make()

    def _make(self) -> None:
        rows = ", ".join(f"({n}, 'name {n}', 0, {n}.5000, 0)" for n in range(1, ROWS + 1))
        self.old.execute(*OLD, f"INSERT INTO person VALUES {rows}")
        ledger = _LEDGER_PG if self.new.kind == "postgresql" else _LEDGER_MYSQL
        self.new.execute(NEW, f"INSERT INTO client VALUES {rows}", *ledger)
        self._ledger = "migrator.ledger" if self.new.kind == "postgresql" else "migrator_ledger"
        if self.old.kind == "postgresql":
            self.old.execute(
                f"CREATE PUBLICATION migrator_{MIGRATION} FOR TABLE person, elsewhere",
                f"SELECT pg_create_logical_replication_slot('migrator_{MIGRATION}', 'pgoutput')",
            )
        self.new.execute(
            f"INSERT INTO {self._ledger} (migration, epoch, segment) VALUES ('{MIGRATION}', 1, 1)"
        )
        with self.new.connect() as connection:
            self._move(connection, self.place())

    def place(self) -> LogPlace:
        return self._places.view().high

    def spoil(self) -> None:
        """A pipeline that is wrong: two rows of the target are, now and after every batch."""
        self.new.execute(*(_SPOIL_PG if self.new.kind == "postgresql" else _SPOIL_MYSQL), *_WRONG_ROWS)

    def write(self, connection: Any, statement: str) -> None:
        """One transaction of the writer, to be applied later."""
        with connection.cursor() as cursor:
            cursor.execute(statement)
            cursor.execute("SELECT * FROM person ORDER BY id")
            rows = [tuple(row) for row in cursor.fetchall()]
        self._waiting.append((rows, self.place()))
        self.writes += 1

    def apply(self, connection: Any) -> None:
        """One batch: what waits, or a part of it, as one transaction with the ledger."""
        count = self._chance.randint(1, max(1, len(self._waiting)))
        rows, place = [self._waiting.popleft() for _ in range(count)][-1]
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("DELETE FROM client")
            cursor.executemany("INSERT INTO client VALUES (%s, %s, %s, %s, %s)", rows)
            self._move(connection, place)
            cursor.execute("COMMIT")

    def _move(self, connection: Any, place: LogPlace) -> None:
        schema = "public" if self.old.kind == "postgresql" else self.old.database
        token = f"{place.state}@1" if self.old.kind == "postgresql" else json.dumps({"gtid": place.state})
        checkpoint = Checkpoint(
            Position(place.order, token), dumps=(TableDump(TableId(schema, "person"), done=True),)
        )
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE {self._ledger} SET position_order = %s, position_token = %s, checkpoint = %s",
                (place.order, token, json.dumps(checkpoint_to_json(checkpoint))),
            )

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def follow(self) -> None:
        """A pipeline with nothing to apply: its place follows the log, which the server itself writes to."""
        self._threads = [threading.Thread(target=self._follow_on)]
        self.start()

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()
        self._engine.dispose()
        if self.failure is not None:
            raise self.failure

    def _write_on(self) -> None:
        """Hot writes: a counter that only rises, and a flag and a price that go back and forth."""
        statements = (
            "UPDATE person SET visits = visits + 1 WHERE id = {}",
            "UPDATE person SET active = 1 - active WHERE id = {}",
            "UPDATE person SET price = 10 - price WHERE id = {}",
            "UPDATE person SET name = CONCAT('name ', visits % 3) WHERE id = {}",
        )
        self._loop(
            lambda c: self.write(c, self._chance.choice(statements).format(self._chance.randint(1, 4))),
            self.old,
        )

    def _apply_on(self) -> None:
        self._loop(lambda c: self.apply(c) if self._waiting else None, self.new)

    def _follow_on(self) -> None:
        self._loop(lambda c: self._move(c, self.place()), self.new, 0.05)

    def _loop(self, act: Any, database: Database, every_s: float = 0.002) -> None:
        try:
            connection = database.connect()
            while not self._stop.wait(every_s):
                act(connection)
            connection.close()
        except BaseException as error:
            self.failure = error
            raise
