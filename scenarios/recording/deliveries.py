"""Rows that capture delivered, read from the event log's segments. Links keep the segments after their release."""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from migrator.errors import VerifyError
from migrator.run.failure import Stopping
from scenarios.workloads.base import Columns, Tracked
from verify.history.history import CHUNK, DELETE, LOG, PUT, SCHEMAS

_EVERY_S = 0.1


class SegmentKeeper:
    """Keeps a hard link to every segment. ``keep`` is called before anything is released, and by a thread.

    The apply loop announces ``apply.committed``, waits for the answer, and only then releases the applied segments.
    The receiver of the announcement calls ``keep`` before it answers. So no segment can be missed, however late the
    thread comes. The thread is there for segments that are never applied. Gaps in the numbers would show a missed
    segment (``deliveries``).

    Args:
        event_log: the event log's directory.
        folder: where links go, on the same file system if possible (else files are copied); made here.
    """

    def __init__(self, event_log: Path, folder: Path):
        self._event_log = event_log
        self._folder = folder
        self._lock = threading.Lock()
        self._kept: dict[str, int] = {}
        self._stopping = Stopping()
        (folder / "data").mkdir(parents=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread = self._stopping.thread("segment keeper", self._run)

    def stop(self) -> None:
        """Takes what is there and ends the thread. Raises what went wrong in it."""
        self._stopping.request()
        self._thread.join()
        self._stopping.raise_failure()
        self.keep()
        self._drop_given_up()

    @property
    def manifests(self) -> int:
        """The number of kept segments."""
        return len(self._kept)

    def keep(self) -> None:
        """Links everything that is new. Data before manifests: a kept manifest's data is kept too."""
        with self._lock:
            names = self._names("segments", ".json")
            for name in names:
                source = self._event_log / "segments" / name
                inode = _inode(source)
                if inode is None or self._kept.get(name) == inode:
                    continue
                try:
                    files = json.loads(source.read_bytes().partition(b"\n")[0])["files"]
                    for file in files:
                        _link(self._event_log / file["path"], self._folder / file["path"])
                    _link(source, self._folder / name)
                except (FileNotFoundError, ValueError):
                    continue  # released in this moment, or torn: the numbers will show it if it was never kept
                self._kept[name] = inode

    def _drop_given_up(self) -> None:
        """Drops segments that were set aside with a damaged event log (``<event log>.damaged``): nobody got them.

        Segments that the target had applied by then are in that folder as well, and stay here. A segment was given up
        if the new log, under a higher epoch, has a number at or below the segment's.
        """
        damaged = Path(f"{self._event_log}.damaged") / "segments"
        newest_epoch = 0
        for name in sorted(self._kept):
            epoch = json.loads((self._folder / name).read_bytes().partition(b"\n")[0])["epoch"]
            if epoch < newest_epoch and (damaged / name).exists():
                (self._folder / name).unlink()
                del self._kept[name]
            newest_epoch = max(newest_epoch, epoch)

    def _run(self) -> None:
        while not self._stopping.wait(_EVERY_S):
            self.keep()

    def _names(self, folder: str, ending: str) -> list[str]:
        try:
            names = os.listdir(self._event_log / folder)
        except FileNotFoundError:
            return []
        return sorted(name for name in names if name.endswith(ending) and not name.startswith("."))


@dataclass(frozen=True, slots=True)
class Deliveries:
    """The contents of the kept segments.

    Attributes:
        table: the history's table.
        segments: how many segments there are.
        missing: numbers of segments that were not kept; if there is one, the history proves nothing.
        chunks: chunks that the dump emitted.
        dropped_rows: rows of chunks that reconciliation dropped, as of the last segment.
        epochs: how many epochs wrote them.
    """

    table: pa.Table
    segments: int
    missing: tuple[int, ...]
    chunks: int
    dropped_rows: int
    epochs: int


def deliveries(folder: Path, tracked: Sequence[Tracked]) -> Deliveries:
    """Reads kept segments. Raises ``VerifyError`` for one that can't be read."""
    wanted = {sides.table.name: sides for sides in tracked}
    parts: list[pa.Table] = []
    numbers, epochs = [], set()
    chunks = dropped = 0
    for path in sorted(folder.glob("*.json")):
        try:
            manifest = json.loads(path.read_bytes().partition(b"\n")[0])
            parts += _segment(folder, manifest, wanted)
        except (OSError, ValueError, KeyError, pa.ArrowInvalid) as error:
            raise VerifyError(
                "a kept segment can't be read", where=str(path), cause=f"{type(error).__name__}: {error}"
            ) from error
        numbers.append(int(manifest["number"]))
        epochs.add(manifest["epoch"])
        dumps = manifest["checkpoint"]["dumps"]
        chunks = max(chunks, sum(dump["chunks"] for dump in dumps))
        dropped = max(dropped, sum(dump["dropped_rows"] for dump in dumps))
    present = set(numbers)
    missing = tuple(n for n in range(1, max(numbers, default=0) + 1) if n not in present)
    table = pa.concat_tables([SCHEMAS["deliveries"].empty_table(), *parts]).combine_chunks()
    return Deliveries(table, len(numbers), missing, chunks, dropped, len(epochs))


def _segment(folder: Path, manifest: dict[str, Any], wanted: dict[str, Tracked]) -> list[pa.Table]:
    """Chunk rows first, then log rows in log order over all tables: the order in which a batch applies them."""
    chunks, logs = [], []
    for file in manifest["files"]:
        tracked = wanted.get(file["schema"]["table"][1])
        if tracked is None:
            continue
        rows = pq.read_table(folder / file["path"])
        if file["kind"] == CHUNK:
            chunks.append(_laid_out(manifest["number"], CHUNK, rows, tracked, None))
        else:
            logs.append(_laid_out(manifest["number"], LOG, *_changes(rows, tracked)))
    if len(logs) > 1:
        merged = pa.concat_tables(logs)
        merged = merged.append_column("place", pa.array(range(merged.num_rows), pa.int64()))
        keys = [("order", "ascending"), ("index", "ascending"), ("place", "ascending")]
        logs = [merged.sort_by(keys).drop_columns(["place"])]
    return [*chunks, *logs]


def _changes(rows: pa.Table, tracked: Tracked) -> tuple[pa.Table, Tracked, pa.Array]:
    """Row images as changes: the before image of an update that keeps its key is no change of its own.

    A TRUNCATE is none either: it names no key, and what it takes away is judged by the target's states.
    """
    rows = rows.filter(pc.not_equal(rows["__sign"], 0))
    keys = _key(rows, tracked.old).to_pylist()
    places, indexes = rows["__position"].to_pylist(), rows["__index"].to_pylist()
    signs = rows["__sign"].to_pylist()
    last = len(signs) - 1
    kept = [
        not (
            sign < 0
            and at < last
            and signs[at + 1] > 0
            and (places[at], indexes[at], keys[at]) == (places[at + 1], indexes[at + 1], keys[at + 1])
        )
        for at, sign in enumerate(signs)
    ]
    rows = rows.filter(pa.array(kept, pa.bool_()))
    kinds = pc.if_else(pc.less(rows["__sign"], 0), pa.scalar(DELETE, pa.int8()), pa.scalar(PUT, pa.int8()))
    return rows, tracked, kinds


def _laid_out(
    segment: int, origin: str, rows: pa.Table, tracked: Tracked, kinds: pa.Array | None
) -> pa.Table:
    columns, count = tracked.old, rows.num_rows
    log = origin == LOG
    value = rows[columns.value] if columns.value and columns.value in rows.column_names else None
    values = {
        "segment": pa.repeat(pa.scalar(segment, pa.int64()), count),
        "origin": pa.repeat(origin, count),
        "order": rows["__position"] if log else None,
        "index": rows["__index"] if log else None,
        "table": pa.repeat(tracked.table.name, count),
        "key": _key(rows, columns),
        "session": rows[columns.session],
        "number": rows[columns.number],
        "kind": pa.repeat(pa.scalar(PUT, pa.int8()), count) if kinds is None else kinds,
        "value": value,
    }
    schema = SCHEMAS["deliveries"]
    arrays = [
        pa.nulls(count, field.type) if values[field.name] is None else pc.cast(values[field.name], field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def _key(rows: pa.Table, columns: Columns) -> Any:
    texts = [pc.cast(rows[name], pa.string()) for name in columns.keys]
    return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, "-")


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def _link(source: Path, goal: Path) -> None:
    """A hard link, or a copy where the file system has none; replaces an older file of that name."""
    temporary = goal.with_name(f"{goal.name}.new")
    temporary.unlink(missing_ok=True)
    try:
        os.link(source, temporary)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK):
            raise
        shutil.copyfile(source, temporary)
    temporary.replace(goal)
