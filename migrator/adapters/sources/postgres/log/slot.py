"""Our replication slot: what state it is in, and what it means that it can't be read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from migrator.adapters.sources.postgres.connection import connect
from migrator.adapters.sources.postgres.log.server_log import has_timeline
from migrator.adapters.sources.postgres.lsn import parse_lsn, token_parts
from migrator.adapters.sources.postgres.publication import changed_publication
from migrator.adapters.sources.postgres.settings import PostgresSource
from migrator.errors import ConnectionFailed, GapError, MigratorError, SourceError
from migrator.model.position import Position

SLOT_STATE = (
    "SELECT confirmed_flush_lsn::text, wal_status, "
    "coalesce(to_jsonb(s)->>'invalidation_reason', to_jsonb(s)->>'conflicting'), "
    "CASE WHEN plugin IS DISTINCT FROM 'pgoutput' THEN 'its plugin is ' || coalesce(plugin::text, 'none') "
    "WHEN database <> pg_catalog.current_database() THEN 'it belongs to database ' || database "
    "WHEN to_jsonb(s)->>'two_phase' = 'true' THEN 'its option two_phase is on' END, "
    "CASE WHEN to_jsonb(s)->>'synced' = 'true' AND pg_catalog.pg_is_in_recovery() THEN 'true' END, "
    "active_pid::text "
    "FROM pg_catalog.pg_replication_slots s"
)
"""Columns of ``SlotState.of``; through JSON, because their names differ between server versions."""

_WAL_FILE = re.compile(r"\b[0-9A-F]{24}\b")
"""A file of the log, by its name."""


@dataclass(frozen=True, slots=True)
class SlotState:
    """The row of ``pg_replication_slots`` about our slot.

    ``confirmed`` is the LSN it goes back to; ``lost`` is empty for a slot that holds its log, else why it doesn't;
    ``unfit`` is empty unless somebody made it otherwise than we do: with two_phase, PREPARE would already send rows
    that nobody may see yet. ``copied``: the server is a standby that keeps it up to date for the primary's end.
    ``read_by``: the number of the server's process that reads it, empty for none.
    """

    confirmed: int
    lost: str
    unfit: str = ""
    copied: bool = False
    read_by: str = ""

    @classmethod
    def of(
        cls,
        confirmed: str | None,
        status: str | None,
        reason: str | None,
        unfit: str | None,
        copied: str | None = None,
        read_by: str | None = None,
    ) -> SlotState:
        """Reads ``confirmed_flush_lsn``, ``wal_status``, ``invalidation_reason`` (before 17: ``conflicting``), what
        doesn't suit us, whether it is a standby's copy, and ``active_pid``.
        """
        lost = "wal_status is 'lost'" if status == "lost" else ""
        if reason == "true":
            lost = lost or "it conflicts with what the primary removed"
        elif reason not in (None, "", "false"):
            lost = f"it was invalidated ({reason})"
        return cls(
            parse_lsn(confirmed) if confirmed else 0, lost, unfit or "", copied == "true", read_by or ""
        )

    def checked(self, source: PostgresSource) -> SlotState:
        """Itself, if it can be read.

        Raises GapError when it lost its log, SourceError when it is unfit or the server only keeps a copy of it.
        """
        if self.copied:
            raise not_the_primary(
                source, "it keeps a copy of the slot, and will give it out once it is promoted"
            )
        if self.lost:
            raise lost_slot(source, self.lost)
        if self.unfit:
            raise SourceError(
                f"replication slot {source.slot!r} isn't one that the migration can read",
                where=source.server.address,
                cause=self.unfit,
                remedy=f"SELECT pg_drop_replication_slot('{source.slot}'); then start the migration anew"
                " (docs/how-to/start-anew.md) if it had begun: it makes its own",
            )
        return self


def not_the_primary(source: PostgresSource, cause: str) -> SourceError:
    """The error for an address that leads to a standby, while the log was read on its primary. Nothing is lost."""
    return SourceError(
        "the address of the source leads to a standby, and the log was read on its primary",
        where=source.server.address,
        cause=f"{cause}; a standby may be behind what was read already",
        remedy="let [source] host and port lead to the primary, or promote this server; then start again",
    )


def fit_slot(
    source: PostgresSource, slot: SlotState | None, after: Position | None, standby: bool
) -> SlotState:
    """The slot as it is needed to read on ``after`` a place.

    Nobody may read it: what a killed run acknowledged last would move the slot after this look at it, and reading
    would begin further on than the state says. Raises ``SourceError``, named: it is unfit, gone, or
    elsewhere, on the primary of this standby; ``ConnectionFailed`` while it is read.
    """
    if slot is not None:
        slot.checked(source)
        if slot.read_by:
            raise slot_in_use(source, f"the server's process {slot.read_by} reads it")
        return slot
    if standby and after is not None and has_timeline(token_parts(after)[1]):
        raise not_the_primary(source, "it has no copy of the slot")
    raise lost_slot(source, "the slot doesn't exist")


def slot_in_use(source: PostgresSource, cause: str) -> ConnectionFailed:
    """The error for a slot that another session reads; a session that was killed does so until the server knows."""
    return ConnectionFailed(
        f"replication slot {source.slot!r} is in use by another session",
        where=source.server.address,
        cause=cause,
        remedy="end the other migrator process; a dead session goes after wal_sender_timeout",
        retryable=True,
    )


def lost_slot(source: PostgresSource, cause: str) -> GapError:
    """The error for a slot that is gone or no longer holds the log."""
    return GapError(
        f"replication slot {source.slot!r} no longer holds the log that is needed",
        where=source.server.address,
        cause=cause,
        remedy="start the migration anew (docs/how-to/start-anew.md), with a higher max_slot_wal_keep_size"
        " if the server dropped the log",
    )


def stopped_log(source: PostgresSource, sqlstate: str, words: str) -> MigratorError | None:
    """Says why the server gives no log, if the slot or the publication is to blame; None if neither is.

    The words are in the server's language, and its code is the same for both: so the slot is looked at. One
    that the server had to find before it came to a publication, and that holds its log, isn't to blame.
    """
    if sqlstate not in ("55000", "58P01", "42704"):
        return None
    if sqlstate == "58P01" and _WAL_FILE.search(words):
        return lost_slot(source, words)
    with connect(source, "look") as connection:
        row = connection.execute(f"{SLOT_STATE} WHERE slot_name = $1", [source.slot]).fetchone()
    if row is None or SlotState.of(*row).lost:
        return lost_slot(source, words)
    return changed_publication(source, words) if sqlstate == "42704" else None
