"""The notes of a fence: its plan and what was there before, in the database's own control table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from migrator.adapters.fences.shared.session import FenceSession, Limit
from migrator.errors import CutoverError
from migrator.model.cutover.fence import FenceKind, FencePlan
from migrator.model.table import TableId

FORMAT = 1


@dataclass(frozen=True, slots=True)
class Noted:
    """The plan and what was there before, noted before anything was changed.

    Attributes:
        plan: of the fence.
        before: what the kind of fence needs to put things back; JSON.
        epoch: highest one of the leaders that have touched the fence; 0: no leader has.
    """

    plan: FencePlan
    before: Mapping[str, Any]
    epoch: int = 0


def to_document(noted: Noted) -> str:
    """Writes notes as JSON."""
    plan = noted.plan
    return json.dumps(
        {
            "format": FORMAT,
            "kind": plan.kind.value,
            "tables": [[table.schema, table.name] for table in plan.tables],
            "login": plan.login,
            "message": plan.message,
            "roles": list(plan.roles),
            "accepted": sorted(plan.accepted),
            "before": noted.before,
            "epoch": noted.epoch,
        },
        sort_keys=True,
    )


def released(epoch: int) -> str:
    """Writes that nothing is noted, and which leader was the last one here."""
    return json.dumps({"format": FORMAT, "epoch": epoch})


def from_document(document: str, where: str) -> Noted | None:
    """Reads notes; None where they say that nothing is noted. Raises ``CutoverError`` for another version's."""
    found = json.loads(document)
    if found.get("format") != FORMAT:
        raise CutoverError(
            "the notes of the fence were written by another version of the migrator",
            where=where,
            cause=f"their format is {found.get('format')!r}, this version knows {FORMAT}",
            remedy="start the version that wrote them, or a newer one",
        )
    if "kind" not in found:
        return None
    plan = FencePlan(
        FenceKind(found["kind"]),
        tuple(TableId(schema, name) for schema, name in found["tables"]),
        found["login"],
        found["message"],
        tuple(found["roles"]),
        frozenset(found["accepted"]),
    )
    return Noted(plan, found["before"], int(found.get("epoch", 0)))


@dataclass(frozen=True, slots=True)
class Notes:
    """The row of one migration and side.

    Attributes:
        table: with the notes, as statements name it.
        there: query whether the table exists, one value.
        name: of the fence, which tells its row: servers of MySQL have one table for all their databases.
        migration: whose.
        side: ``source`` or ``target``.
        where: the server in words.
        clock: the server's clock now, in seconds since 1970, as SQL that gives a text.
    """

    table: str
    there: str
    name: str
    migration: str
    side: str
    where: str
    clock: str

    def read(self, session: FenceSession) -> Noted | None:
        """Returns the notes; None where nothing is noted."""
        document = self._document(session)
        return None if document is None else from_document(document, self.where)

    def epoch(self, session: FenceSession) -> int:
        """Returns the highest epoch of the leaders that have touched the fence; 0 where none has."""
        document = self._document(session)
        return 0 if document is None else int(json.loads(document).get("epoch", 0))

    def _document(self, session: FenceSession) -> str | None:
        if not session.rows(self.there)[0][0]:
            return None
        found = session.rows(f"SELECT document FROM {self.table} WHERE name = %s", (self.name,))
        return str(found[0][0]) if found else None

    def others(self, session: FenceSession, kind: FenceKind | None = None) -> list[str]:
        """Returns the other fences on this server which are noted here, of one kind or of any, in words."""
        return [
            f"{migration} ({side})"
            for migration, side, name, document in session.rows(
                f"SELECT migration, side, name, document FROM {self.table} ORDER BY 1, 2"
            )
            if name != self.name
            and (noted := from_document(str(document), self.where)) is not None
            and kind in (None, noted.plan.kind)
        ]

    def write(self, session: FenceSession, noted: Noted, limit: Limit) -> None:
        """Makes the notes durable."""
        self._put(session, to_document(noted), limit)

    def claim(self, session: FenceSession, noted: Noted | None, epoch: int, limit: Limit) -> None:
        """Keeps that a leader of this epoch has touched the fence, whose notes are these."""
        self._put(session, released(epoch) if noted is None else to_document(noted), limit)

    def _put(self, session: FenceSession, document: str, limit: Limit) -> None:
        """Whoever calls is alone with the row."""
        if self._document(session) is None:
            limit.change(
                session,
                (
                    f"INSERT INTO {self.table} (name, migration, side, document) VALUES (%s, %s, %s, %s)",
                    (self.name, self.migration, self.side, document),
                ),
            )
        else:
            statement = f"UPDATE {self.table} SET document = %s WHERE name = %s"
            limit.change(session, (statement, (document, self.name)))

    def up_at(self, session: FenceSession) -> float | None:
        """Returns when the fence was up, by the server's clock in seconds since 1970; None where it isn't known.

        Whatever began later met the fence from its first statement on.
        """
        if not session.rows(self.there)[0][0]:
            return None
        found = session.rows(f"SELECT up_at FROM {self.table} WHERE name = %s", (self.name,))
        return None if not found or found[0][0] is None else float(found[0][0])

    def stamp(self, session: FenceSession, limit: Limit) -> None:
        """Keeps that everything is changed by now."""
        stamped = f"UPDATE {self.table} SET up_at = {self.clock} WHERE name = %s"
        limit.change(session, (stamped, (self.name,)))

    def forget(self, noted: Noted) -> tuple[str, tuple[str, ...]]:
        """Returns the statement that removes the notes, and its values. The last leader's epoch stays."""
        if not noted.epoch:
            return f"DELETE FROM {self.table} WHERE name = %s", (self.name,)
        statement = f"UPDATE {self.table} SET document = %s, up_at = NULL WHERE name = %s"
        return statement, (released(noted.epoch), self.name)
