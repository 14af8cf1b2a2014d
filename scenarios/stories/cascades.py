"""The operator's preparation of a story: foreign keys that act unseen get the triggers of the manual."""

from __future__ import annotations

from migrator.adapters.sources.binlog.statements.foreign_keys import read_foreign_keys
from migrator.connections.mysql.sql import quote, quote_table
from scenarios.database import Database


def show_deletes(old: Database) -> int:
    """Makes, where the engine doesn't log it, each ON DELETE action the work of a trigger, which is logged.

    They are those that ``migrator check`` prints. Returns their number: MySQL logs what its foreign keys do, and
    PostgreSQL too.
    """
    if old.kind != "mariadb":
        return 0
    connection = old.connect(autocommit=True)
    triggers = 0
    try:
        for key in read_foreign_keys(connection, old.database):
            if key.trigger():
                name = quote(f"{key.parent.name}_{key.name}"[:64])
                connection.cursor().execute(
                    f"CREATE TRIGGER {name} BEFORE DELETE ON {quote_table(key.parent)} FOR EACH ROW {key.trigger()}"
                )
                triggers += 1
    finally:
        connection.close()
    return triggers
