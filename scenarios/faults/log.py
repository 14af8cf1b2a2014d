"""Faults of the source's log (rotated, purged, slot dropped) and of our event log (old segments delivered again)."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path

from migrator.adapters.sources.binlog.preflight_checks import log_status
from scenarios.database import Database
from scenarios.faults.fault import Fault, Options, impossible, migration_name, side_of, state_folder
from scenarios.faults.processes import await_true, running_pid
from scenarios.faults.session import execute, query
from scenarios.world import World

_PURGE_TIMEOUT_S = 30.0
_POLL_S = 0.02


class LogFault(Fault):
    """A fault of the source's log. Option ``side`` may only be ``source``."""

    def __init__(self, options: Options):
        super().__init__(options)
        options.choice("side", ("source",), "source")
        self._effect = ""

    def effect(self) -> str:
        """See ``Fault.effect``."""
        return self._effect


class RotateLog(LogFault):
    """The server goes on in a new log file."""

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        direct = side_of(world, "source").direct
        before = _log_file(direct)
        if direct.kind == "postgresql":
            # A switch does nothing when nothing was written since the last one.
            execute(direct, ["SELECT pg_logical_emit_message(false, 'rotate', '')", "SELECT pg_switch_wal()"])
        else:
            execute(direct, ["FLUSH BINARY LOGS"])
        await_true(lambda: _log_file(direct) != before, "the server writes another log file")
        self._effect = f"{before}, now {_log_file(direct)}"


class PurgeLog(LogFault):
    """The pipeline is killed, the log goes on, the part it needs is thrown away, and it is started again.

    The writers must go on, so that the purged part holds changes that the pipeline needs. PostgreSQL: the pipeline's
    slot is moved to the end of the log (``max_slot_wal_keep_size`` would take other slots as well). MariaDB, MySQL:
    ``PURGE BINARY LOGS``.
    """

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        running_pid(world, self.name)
        world.pipeline.kill()
        direct = side_of(world, "source").direct
        if direct.kind == "postgresql":
            self._advance(direct, f"migrator_{migration_name(world)}")
        else:
            self._purge(direct)
        if not world.pipeline.running:
            world.pipeline.start()

    def _advance(self, direct: Database, slot: str) -> None:
        before = _slot_place(direct, slot, self.name)
        await_true(
            lambda: query(direct, "SELECT pg_current_wal_lsn() > %s::pg_lsn + 1000", [before]) == [(True,)],
            "somebody writes to the log while the pipeline is down",
        )

        def advanced() -> bool:
            _end_walsender(direct, slot)
            query(
                direct,
                "SELECT pg_replication_slot_advance(slot_name, pg_current_wal_lsn()) FROM pg_replication_slots"
                " WHERE slot_name = %s AND NOT active",
                [slot],
            )
            return _slot_place(direct, slot, self.name) != before

        await_true(advanced, f"the slot {slot} moves on", _PURGE_TIMEOUT_S)
        self._effect = f"the slot {slot} no longer goes back to {before}"

    def _purge(self, direct: Database) -> None:
        first = _log_file(direct)
        position = _log_position(direct)
        await_true(
            lambda: _log_position(direct) != position, "somebody writes to the log while the pipeline is down"
        )
        with_setting = query(direct, "SHOW GLOBAL VARIABLES LIKE 'slave_connections_needed_for_purge'")
        if with_setting:
            execute(direct, ["SET GLOBAL slave_connections_needed_for_purge = 0"])

        def purged() -> bool:
            execute(direct, ["FLUSH BINARY LOGS"])
            execute(direct, [f"PURGE BINARY LOGS TO '{_log_file(direct)}'"])
            return first not in {row[0] for row in query(direct, "SHOW BINARY LOGS")}

        await_true(purged, f"the source gives up {first}", _PURGE_TIMEOUT_S)
        self._effect = f"{first} is purged"


class DropSlot(LogFault):
    """The replication slot is dropped behind the pipeline's back. PostgreSQL only."""

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        direct = side_of(world, "source").direct
        if direct.kind != "postgresql":
            raise impossible(self.name, "only a PostgreSQL server has slots", "use purge_log there")
        slot = f"migrator_{migration_name(world)}"
        _slot_place(direct, slot, self.name)

        def dropped() -> bool:
            _end_walsender(direct, slot)
            query(
                direct,
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
                " WHERE slot_name = %s AND NOT active",
                [slot],
            )
            return not query(direct, "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", [slot])

        await_true(dropped, f"the slot {slot} is gone")
        self._effect = f"the slot {slot} is dropped"


class OldSegments(Fault):
    """Keeps old files of the event log, to bring them back. A thread links every file as soon as it appears."""

    def __init__(self, options: Options):
        super().__init__(options)
        self._kept: Path | None = None
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._effect = ""

    def prepare(self, world: World) -> None:
        """See ``Fault.prepare``."""
        event_log = state_folder(world) / "eventlog"
        # Beside it: a hard link can't leave its filesystem.
        kept = event_log.with_name(f"kept-{self.name}")
        kept.mkdir(parents=True)
        self._kept = kept
        self._thread = threading.Thread(target=self._keep, args=(event_log, kept), daemon=True)
        self._thread.start()

    def effect(self) -> str:
        """See ``Fault.effect``."""
        return self._effect

    def close(self) -> None:
        """See ``Fault.close``."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()

    def _keep(self, event_log: Path, kept: Path) -> None:
        while not self._ending.wait(_POLL_S):
            for folder in ("data", "segments"):
                (kept / folder).mkdir(exist_ok=True)
                with suppress(FileNotFoundError):  # not there yet
                    for path in (event_log / folder).iterdir():
                        if not path.name.startswith("."):
                            with suppress(FileExistsError, FileNotFoundError):  # had already, or gone already
                                (kept / folder / path.name).hardlink_to(path)

    def _restored(self, event_log: Path, wanted: range) -> int:
        """Puts back the kept files of these segment numbers; returns the number of segments."""
        kept = self._kept
        if kept is None:
            raise impossible(self.name, "nothing was kept: it wasn't prepared before the pipeline started")
        count = 0
        for folder in ("data", "segments"):
            for path in sorted((kept / folder).iterdir()):
                if _segment_number(path) in wanted:
                    count += folder == "segments"
                    with suppress(FileExistsError):  # not released yet
                        (event_log / folder / path.name).hardlink_to(path)
        return count


class Redeliver(OldSegments):
    """The event log holds the last ``segments`` applied segments again, as if they had never been released.

    The pipeline is killed for it and started again: it must skip segments that the ledger holds already.
    """

    def __init__(self, options: Options):
        super().__init__(options)
        self._segments = options.whole("segments", 5, least=1)

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        running_pid(world, self.name)
        world.pipeline.kill()
        event_log = state_folder(world) / "eventlog"
        released = int((event_log / "released").read_text())
        first = max(1, released - self._segments + 1)
        count = self._restored(event_log, range(first, released + 1))
        if not count:
            raise impossible(self.name, f"none of the segments {first} to {released} was kept")
        (event_log / "released").write_text(f"{first - 1}\n")
        self._effect = f"{count} applied segments delivered again, up to {released}"
        if not world.pipeline.running:
            world.pipeline.start()


class RestoreCheckpoint(OldSegments):
    """The event log is again what it was some time ago, as from a backup; the target has gone on since.

    Option ``segments``: how many newest of those that the target holds are missing as well (default: half of
    them, at least one). The pipeline is killed for it and started again.
    """

    def __init__(self, options: Options):
        super().__init__(options)
        self._missing = options.whole("segments", 0)

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        running_pid(world, self.name)
        world.pipeline.kill()
        event_log = state_folder(world) / "eventlog"
        kept = self._kept
        numbers = sorted(map(_segment_number, (kept / "segments").iterdir())) if kept is not None else []
        record = event_log / "released"
        released = int(record.read_text()) if record.exists() else 0
        applied = [number for number in numbers if number <= released]
        missing = self._missing or max(1, len(applied) // 2)
        if len(applied) <= missing:
            raise impossible(
                self.name, f"{len(applied)} applied segments were kept, fewer than would have to be missing"
            )
        last = applied[-missing - 1]
        for folder in ("data", "segments"):
            for path in (event_log / folder).iterdir():
                path.unlink()
        self._restored(event_log, range(last, last + 1))
        (event_log / "released").write_text(f"{last - 1}\n")
        self._effect = f"the event log ends at segment {last} again, it had {numbers[-1]}"
        if not world.pipeline.running:
            world.pipeline.start()


class DamageSegment(Fault):
    """The pipeline is killed, a segment that the target doesn't hold is damaged, and it is started again.

    Option ``how``: ``flip`` (one bit of a data file), ``tear`` (its second half is gone), ``manifest`` (torn).
    """

    def __init__(self, options: Options):
        super().__init__(options)
        self._how = options.choice("how", ("flip", "tear", "manifest"), "flip")
        self._effect = ""

    def effect(self) -> str:
        """See ``Fault.effect``."""
        return self._effect

    def fire(self, world: World) -> None:
        """See ``Fault.fire``."""
        running_pid(world, self.name)
        world.pipeline.kill()
        event_log = state_folder(world) / "eventlog"
        direct = side_of(world, "target").direct
        applied = int(str(query(direct, "SELECT max(segment) FROM migrator.ledger")[0][0]))
        folder, pattern = ("segments", "*.json") if self._how == "manifest" else ("data", "*.parquet")
        waiting = [path for path in (event_log / folder).glob(pattern) if _segment_number(path) > applied]
        # Data of a segment that was being written has no manifest, and means nothing.
        whole = [
            path for path in waiting if (event_log / f"segments/{_segment_number(path):010d}.json").exists()
        ]
        if not whole:
            raise impossible(self.name, f"the event log holds no segment beyond {applied}")
        path = max(whole)
        content = bytearray(path.read_bytes())
        if self._how == "flip":
            content[len(content) // 2] ^= 1
        else:
            del content[len(content) // 2 :]
        path.unlink()  # whoever keeps a link to it keeps what was written
        path.write_bytes(content)
        self._effect = f"{path.name} is damaged ({self._how}), the target holds segment {applied}"
        if not world.pipeline.running:
            world.pipeline.start()


def _segment_number(path: Path) -> int:
    digits = path.name.partition(".")[0].partition("-")[0]
    return int(digits) if digits.isdecimal() else 0


def _slot_place(database: Database, slot: str, fault: str) -> str:
    """Returns the position that a slot goes back to. Raises ``MigratorError`` when there is no such slot."""
    found = query(
        database, "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s", [slot]
    )
    if not found:
        raise impossible(fault, f"the source has no slot {slot}")
    return str(found[0][0])


def _end_walsender(database: Database, slot: str) -> None:
    query(
        database,
        "SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots"
        " WHERE slot_name = %s AND active_pid IS NOT NULL",
        [slot],
    )


def _log_file(database: Database) -> str:
    if database.kind == "postgresql":
        return str(query(database, "SELECT pg_walfile_name(pg_current_wal_insert_lsn())")[0][0])
    return str(_log_position(database)[0])


def _log_position(database: Database) -> tuple[object, ...]:
    """File and offset at which a MariaDB or MySQL server writes its log."""
    ((version,),) = query(database, "SELECT VERSION()")
    return query(database, log_status(str(version)))[0][:2]


FAULTS: dict[str, type[Fault]] = {
    "rotate_log": RotateLog,
    "purge_log": PurgeLog,
    "drop_slot": DropSlot,
    "damage_segment": DamageSegment,
    "redeliver": Redeliver,
    "restore_checkpoint": RestoreCheckpoint,
}
