"""The list of changed keys as files on the leader's machine.

::

    <directory>/<epoch>-<part>/begun.json     the segment at which the part begins, the epoch before it
    <directory>/<epoch>-<part>/<n>.arrows     Arrow stream: column ``segment`` and the key's columns of one table
    <directory>/<epoch>-<part>/unknown.jsonl  batches that wrote rows of a table whose keys nobody listed, a line each
    <directory>/<epoch>.claimed               the epoch before, of a leader that takes over or was killed then

Keys are on the disk's cache before their batch is applied, so a kill loses none that was applied; a power cut may, so
parts of two boots don't join. A stream's last message may be torn: its batch was never applied.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import rmtree

import pyarrow as pa
import pyarrow.compute as pc

from migrator.adapters.event_log.files.durable import disk_refused
from migrator.ports.changed_keys import UNKNOWN_EPOCH

FORMAT = 1
PART_BYTES = 32 << 20
KEPT_BYTES, PARTS_MAX = 8 * PART_BYTES, 1_000
"""The most bytes and parts that are kept: the list reaches back no further than the oldest. Each start of a leader
begins a part, so a number of parts alone would forget what a few restarts came after."""
_BEGUN, _UNKNOWN, _TABLE = "begun.json", "unknown.jsonl", b"table"
_SEGMENT = "segment"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class Begun:
    """The head of a part; a claim has the same fields.

    Attributes:
        epoch: of the leader that writes it.
        after: the segment at which the ledger stood; 0 in a claim.
        follows: the epoch that the ledger had before.
        boot: names the time since the machine was started.
    """

    epoch: int
    after: int
    follows: int
    boot: str


class ChangedKeysFiles:
    """``ports.changed_keys.ChangedKeysWriter``.

    Args:
        directory: made if it isn't there.
        part_bytes: keys in a part, roughly.
        kept_bytes: of all parts but the one that is written.
    """

    def __init__(self, directory: Path, part_bytes: int = PART_BYTES, kept_bytes: int = KEPT_BYTES):
        self._directory, self._part_bytes, self._kept_bytes = directory, part_bytes, kept_bytes
        self._begun: Begun | None = None
        self._part = directory
        self._streams: dict[tuple[str, pa.Schema], pa.RecordBatchStreamWriter] = {}
        self._bytes = 0
        self._listed: dict[str, int] = {}

    def claim(self, epoch: int, follows: int) -> None:
        """See the port."""
        if epoch == follows:  # it has the ledger already: it goes on after a lost connection
            return
        with _refusals(self._directory):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write(_claim(self._directory, epoch), Begun(epoch, 0, follows, _boot()))

    def begin(self, epoch: int, after: int, follows: int) -> None:
        """See the port."""
        self.close()
        with _refusals(self._directory):
            self._new_part(Begun(epoch, after, follows, _boot()))
            _claim(self._directory, epoch).unlink(missing_ok=True)

    def note(self, segment: int, table: str, keys: pa.Table) -> None:
        """See the port."""
        if self._begun is None or not keys.num_rows:
            return
        with _refusals(self._part):
            if self._bytes > self._part_bytes:
                begun = self._begun
                self.close()
                # Other keys of this segment may be in the part before: this one is complete only behind it.
                self._new_part(Begun(begun.epoch, segment, begun.epoch, begun.boot))
            rows = keys.add_column(0, _SEGMENT, pa.repeat(pa.scalar(segment, pa.int64()), keys.num_rows))
            schema = rows.schema.remove_metadata()
            if (stream := self._streams.get((table, schema))) is None:
                path = self._part / f"{len(self._streams)}.arrows"
                named = schema.with_metadata({_TABLE: table.encode()})
                sink = pa.OSFile(os.fspath(path), "wb")
                stream = self._streams[table, schema] = pa.ipc.new_stream(sink, named)
            stream.write_table(rows.cast(schema).combine_chunks())
            self._bytes += rows.nbytes

    def unknown(self, segment: int, table: str) -> None:
        """See the port."""
        if self._begun is None or self._listed.get(table) == segment:
            return
        with _refusals(self._part), (self._part / _UNKNOWN).open("a", encoding="utf-8") as lines:
            lines.write(json.dumps({"table": table, "segment": segment}) + "\n")
        self._listed[table] = segment

    def close(self) -> None:
        """See the port."""
        for stream in self._streams.values():
            stream.close()
        self._streams, self._begun, self._bytes = {}, None, 0

    def _new_part(self, begun: Begun) -> None:
        parts = _parts(self._directory)
        numbers = [int(name[21:]) for name in parts if name.startswith(f"{begun.epoch:020d}-")]
        self._part = self._directory / f"{begun.epoch:020d}-{max(numbers, default=-1) + 1:06d}"
        self._part.mkdir(mode=0o700, parents=True)
        _write(self._part / _BEGUN, begun)
        self._forget(parts)
        self._begun = begun

    def _forget(self, parts: Sequence[str]) -> None:
        """Removes the oldest parts beyond the bounds, and claims as old: those would hide that a part is missing."""
        kept, left = list[str](), self._kept_bytes
        for name in reversed(parts[-(PARTS_MAX - 1) :]):
            left -= sum(path.stat().st_size for path in (self._directory / name).iterdir())
            if left < 0:
                break
            kept.append(name)
        if len(kept) == len(parts):
            return
        oldest = kept[-1] if kept else self._part.name
        for claim in self._directory.glob("*.claimed"):
            if claim.name[:20] <= oldest[:20]:
                claim.unlink(missing_ok=True)
        for name in parts[: len(parts) - len(kept)]:
            rmtree(self._directory / name, ignore_errors=True)


class ChangedKeysRead:
    """``ports.changed_keys.ChangedKeysReader``; ``directory`` is the writer's."""

    def __init__(self, directory: Path):
        self._directory = directory

    def since(self, segment: int, table: str, epoch: int) -> pa.Table | None:
        """See the port. Raises ``EventLogError`` where files can't be read."""
        with _refusals(self._directory):
            parts = self._covering(segment, epoch)
            if parts is None or any(_lists_unknown(part, table, segment) for part in parts):
                return None
            found = [rows for part in parts for rows in _keys(part, table)]
            kept = [rows.filter(pc.greater(rows[_SEGMENT], segment)).drop([_SEGMENT]) for rows in found]
            keys = pa.concat_tables(kept, promote_options="permissive") if kept else pa.table({})
            return keys.group_by(keys.column_names).aggregate([]) if keys.num_rows else keys

    def _covering(self, segment: int, epoch: int) -> Sequence[Path] | None:
        """The parts that list everything behind a segment, newest first; None where some are missing."""
        found: list[Path] = []
        wanted, boot = epoch, _boot()
        for name in reversed(_parts(self._directory)):
            part = self._directory / name
            begun = _begun(part / _BEGUN)
            if begun is None:
                return None
            while wanted > begun.epoch and (claim := _begun(_claim(self._directory, wanted))) is not None:
                wanted = claim.follows if claim.boot == boot else UNKNOWN_EPOCH
            if begun.epoch != wanted or begun.boot != boot:
                return None
            found.append(part)
            if begun.after <= segment or not begun.follows:
                return found
            wanted = begun.follows
        return None


def _parts(directory: Path) -> list[str]:
    """Names of the parts that were begun, oldest first."""
    return sorted(path.parent.name for path in directory.glob(f"*/{_BEGUN}"))


def _claim(directory: Path, epoch: int) -> Path:
    return directory / f"{epoch:020d}.claimed"


def _write(path: Path, begun: Begun) -> None:
    new = path.with_name(f".{path.name}")
    new.write_text(json.dumps({"format": FORMAT, **asdict(begun)}), "utf-8")
    new.replace(path)


def _begun(path: Path) -> Begun | None:
    """The head of a part, or a claim; None where it is missing, of another version, or damaged."""
    try:
        document = json.loads(path.read_text("utf-8"))
        if document.pop("format") != FORMAT:
            return None
        return Begun(**document)
    except (FileNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _lists_unknown(part: Path, table: str, segment: int) -> bool:
    """Tells whether rows of a table were written behind a segment whose keys nobody listed."""
    try:
        lines = (part / _UNKNOWN).read_text("utf-8").splitlines()
    except FileNotFoundError:
        return False
    found = [json.loads(line) for line in lines if line.endswith("}")]
    return any(one["table"] == table and one["segment"] > segment for one in found)


def _keys(part: Path, table: str) -> Iterator[pa.Table]:
    """The keys of a table in a part, a stream at a time."""
    for path in sorted(part.glob("*.arrows")):
        with pa.OSFile(os.fspath(path)) as file:
            try:
                stream = pa.ipc.open_stream(file)
            except pa.ArrowInvalid:
                continue  # torn before its first message: nothing of it was applied
            if (stream.schema.metadata or {}).get(_TABLE) == table.encode():
                yield pa.Table.from_batches(_whole(stream), stream.schema.remove_metadata())


def _whole(stream: pa.RecordBatchStreamReader) -> Iterator[pa.RecordBatch]:
    """Record batches up to one that is torn, or not yet written in full."""
    while True:
        try:
            yield stream.read_next_batch().replace_schema_metadata(None)
        except (StopIteration, pa.ArrowInvalid, OSError):
            return


def _boot() -> str:
    try:
        return _BOOT.read_text("utf-8").strip()
    except OSError:
        return ""


@contextmanager
def _refusals(where: Path) -> Iterator[None]:
    """Names the folder in what the disk refuses."""
    try:
        yield
    except OSError as error:
        raise disk_refused("the list of changed keys can't be written or read", where, error) from error
