"""Key maps in tables of the target's server, by a connection of their own.

Numbers are given in a transaction of their own, under the lock of the map's counter: two writers take turns, and a
key has one number however often it is asked for. The tables only grow. What a leader that was cut off still adds is
what any other would have added, so no epoch has to be checked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, bindparam, text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError

from migrator.connections.refusing import refusing_state, remedy_of
from migrator.errors import ConnectionFailed, TargetError

KEY_BYTES = 512
"""The longest old key, in UTF-8: what every server can index beside the names."""
_ASKED_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class KeyMapTables:
    """The place of the key maps on one kind of server, and its SQL for them.

    Attributes:
        exists: a query that has a row if both tables are there.
        make: statements that make them.
        entries, counters: the tables, quoted.
        ignore: what makes an INSERT pass over a row that is there: words behind INSERT, and at its end.
        grant: what lets the migration's role make them.
    """

    exists: str
    make: tuple[str, ...]
    entries: str
    counters: str
    ignore: tuple[str, str]
    grant: str


class SqlKeyMaps:
    """``ports.key_maps.KeyMaps`` by SQLAlchemy.

    Args:
        engine: of the target's database.
        tables: where the maps are.
        migration: whose maps.
        where: the server in words.
    """

    def __init__(self, engine: Engine, tables: KeyMapTables, migration: str, where: str):
        self._engine = engine.execution_options(isolation_level="READ COMMITTED")
        self._tables, self._migration, self._where = tables, migration, where
        self._connection: Connection | None = None

    def numbers(self, name: str, keys: Sequence[str]) -> dict[str, int]:
        """See the port."""
        self._check(name, keys)
        try:
            connection = self._connected()
            with connection.begin():
                found = self._find(connection, name, keys)
            missing = [key for key in dict.fromkeys(keys) if key not in found]
            if missing:
                with connection.begin():
                    found |= self._give(connection, name, missing)
        except (OperationalError, InterfaceError) as error:
            self.close()
            if refusing_state(error.orig) is not None:
                raise self._refused(error) from None
            raise ConnectionFailed(
                "the key maps can't be reached",
                where=self._where,
                cause=str(error.orig),
                remedy="try again: no row of the batch is in the target yet",
                retryable=True,
            ) from None
        except DBAPIError as error:
            self.close()
            raise self._refused(error) from None
        return found

    def _refused(self, error: DBAPIError) -> TargetError:
        return TargetError(
            "the key maps can't be used",
            where=f"{self._where}, {self._tables.entries}",
            cause=str(error.orig),
            remedy=remedy_of(error, self._tables.grant),
        )

    def close(self) -> None:
        """See the port."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect()
            with self._connection.begin():
                exists = self._connection.execute(text(self._tables.exists)).first() is not None
            for statement in () if exists else self._tables.make:
                with self._connection.begin():
                    self._connection.execute(text(statement))
        return self._connection

    def _check(self, name: str, keys: Sequence[str]) -> None:
        for key in keys:
            if len(key.encode()) > KEY_BYTES:
                raise TargetError(
                    f"a key is too long for the key map {name}",
                    where=f"{key[:60]!r}...",
                    cause=f"it has {len(key.encode())} bytes",
                    remedy=f"at most {KEY_BYTES}: let the mapping give a shorter key, such as its SHA-256",
                )

    def _find(self, connection: Connection, name: str, keys: Sequence[str]) -> dict[str, int]:
        query = text(
            f"SELECT old_key, new_key FROM {self._tables.entries}"
            " WHERE migration = :migration AND name = :name AND old_key IN :keys"
        ).bindparams(bindparam("keys", expanding=True))
        found: dict[str, int] = {}
        for part in _parts(keys):
            asked = {"migration": self._migration, "name": name, "keys": [key.encode() for key in part]}
            found |= {bytes(key).decode(): int(number) for key, number in connection.execute(query, asked)}
        return found

    def _give(self, connection: Connection, name: str, keys: Sequence[str]) -> dict[str, int]:
        """Numbers for keys that had none a moment ago, in their order."""
        words, end = self._tables.ignore
        own = {"migration": self._migration, "name": name}
        counter = f"{self._tables.counters} WHERE migration = :migration AND name = :name"
        connection.execute(
            text(
                f"INSERT {words} INTO {self._tables.counters} (migration, name, following)"
                f" VALUES (:migration, :name, 1) {end}"
            ),
            own,
        )
        first = int(connection.execute(text(f"SELECT following FROM {counter} FOR UPDATE"), own).scalar_one())
        found = self._find(connection, name, keys)
        new = [key for key in keys if key not in found]
        numbers = {key: first + place for place, key in enumerate(new)}
        if numbers:
            connection.execute(
                text(
                    f"INSERT INTO {self._tables.entries} (migration, name, old_key, new_key)"
                    " VALUES (:migration, :name, :old_key, :new_key)"
                ),
                [{**own, "old_key": key.encode(), "new_key": number} for key, number in numbers.items()],
            )
            connection.execute(
                text(
                    f"UPDATE {self._tables.counters} SET following = :following"
                    " WHERE migration = :migration AND name = :name"
                ),
                {**own, "following": first + len(numbers)},
            )
        return found | numbers


def _parts(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    distinct = list(dict.fromkeys(keys))
    for start in range(0, len(distinct), _ASKED_AT_ONCE):
        yield distinct[start : start + _ASKED_AT_ONCE]
