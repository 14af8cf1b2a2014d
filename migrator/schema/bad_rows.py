"""The ledger's record of rows that are set aside, changed from outside the run, with the act in the history."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace

from sqlalchemy import URL, Engine, text
from sqlalchemy.exc import DBAPIError

from migrator.connections.refusing import remedy_of
from migrator.errors import RequestError, TargetError
from migrator.model.codecs.codec import FORMAT, FormatError, check_number
from migrator.model.codecs.ledger_codec import ledger_from_json, ledger_to_json, refuse_reset
from migrator.model.progress import BadRow
from migrator.schema.acts import act_sql, named, note, values
from migrator.schema.control import connected
from migrator.schema.dialects import DIALECTS
from migrator.schema.engines import as_engine


def drop_bad_row(
    target: Engine | URL | str,
    migration: str,
    who: tuple[str, str],
    row: tuple[str, tuple[str, ...]],
    reason: str,
) -> BadRow:
    """Notes in the ledger that a row isn't to be migrated as it is now, and in the history who said so.

    The ledger's row is locked meanwhile, as a batch locks it: a run reads what is noted with its next one.

    Args:
        target: the target's database.
        migration: whose ledger.
        who: login, and the server in words.
        row: target table and key, as they are listed.
        reason: why.

    Raises ``RequestError`` where no such row is set aside, or several are, ``ConnectionFailed``, ``TargetError``.
    """
    engine = as_engine(target)
    dialect = DIALECTS[engine.dialect.name]
    sql = act_sql(dialect.history, lambda number, _: f":v{number}")
    read = f"SELECT format, {dialect.read_document} FROM {dialect.ledger} WHERE migration = :v1 FOR UPDATE"
    write = f"UPDATE {dialect.ledger} SET checkpoint = {dialect.stored_document} WHERE migration = :v2"
    with connected(engine) as connection:
        try:
            found = connection.execute(text(read), named([migration])).fetchall()
            document, dropped = dropped_in(found[0] if found else (0, None), row, reason, who[1])
            connection.execute(text(write), named([document, migration]))
            said = f"{dropped.target} {dropped.key_text()}"
            note(
                lambda statement, parameters: connection.execute(text(statement), named(parameters)),
                lambda statement, parameters: [
                    tuple(one) for one in connection.execute(text(statement), named(parameters))
                ],
                sql,
                values(migration, "rows drop", who[0], reason=reason, detail=said),
            )
            connection.commit()
        except DBAPIError as error:
            raise TargetError(
                "the ledger's record of rows set aside can't be changed",
                where=f"{who[1]}, {dialect.ledger}",
                cause=str(error.orig).replace("\n", " ").strip(),
                remedy=remedy_of(error, "run the command with the user that the migration uses"),
            ) from None
    return dropped


def dropped_in(
    found: tuple[int, str | None], row: tuple[str, tuple[str, ...]], reason: str, where: str
) -> tuple[str, BadRow]:
    """The ledger's document with the row given up, and that row."""
    number, document = found
    parsed = {} if document is None else json.loads(document)
    refuse_reset(parsed, where)
    try:
        check_number("ledger", int(number), FORMAT)
        checkpoint, segment_id = ledger_from_json(parsed) if parsed else (None, "")
    except FormatError as error:
        raise TargetError(
            "the target's ledger can't be read",
            where=where,
            cause=str(error),
            remedy="run the version of the tool that wrote it, or a newer one",
        ) from None
    held = () if checkpoint is None else checkpoint.bad_rows
    meant = [one for one in held if one.target == row[0] and one.is_named(row[1])]
    if len(meant) > 1:
        raise RequestError(
            f"several of {row[0]} are set aside with this key",
            where="; ".join(one.key_text() for one in meant),
            cause="a grain, and a row or another grain, may have the same value",
            remedy="write each value of the key behind its column:"
            f" migrator rows drop {row[0]} {shlex.join(meant[0].spelled())}",
        )
    if not meant or checkpoint is None:
        raise RequestError(
            f"no row of {row[0]} with this key is set aside",
            where=f"{row[0]} {' '.join(row[1])}",
            cause=f"there are {sum(one.target == row[0] for one in held)} of this table",
            remedy="take table and key as `migrator rows set-aside` lists them",
        )
    changed = replace(meant[0], dropped=reason)
    rows = tuple(changed if one is meant[0] else one for one in held)
    written = ledger_to_json(replace(checkpoint, bad_rows=rows), segment_id)
    return json.dumps(written, ensure_ascii=False), changed
