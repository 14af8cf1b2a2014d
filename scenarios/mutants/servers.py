"""The same rules broken in the adapters of real servers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from migrator.adapters.coordination.zookeeper.leadership import ZooKeeperLeadership
from migrator.adapters.event_log.files import batch_reader, durable
from migrator.adapters.event_log.files.segment_writer import FileSegmentWriter
from migrator.adapters.sources.mariadb import log_reader
from migrator.adapters.sources.mariadb.catalog import log_end
from migrator.adapters.targets.postgres.rows.prepared import Prepared
from migrator.adapters.targets.postgres.rows.writer import BatchWriter
from migrator.adapters.targets.shared import target_writer
from migrator.adapters.targets.shared.ledger import LedgerSession, LedgerTable
from migrator.model.ledger import Ledger
from migrator.model.progress import Checkpoint
from migrator.model.segment import Manifest
from migrator.run.apply import transform_job
from migrator.run.lead import resume
from migrator.run.lead.lead import Lead
from scenarios.mutants.broken_apply import net_by_ends, net_to_first_image, net_without_deletes
from scenarios.simulation.setup import Patch
from transforms.analysis.plan import MappingPlan

_move = LedgerTable.move
_write_all = BatchWriter.write


def _moved_apart(
    self: LedgerTable,
    session: LedgerSession,
    migration: str,
    segment: int,
    checkpoint: Checkpoint,
    segment_id: str = "",
) -> None:
    """The rows are committed before the ledger moves."""
    session.run("COMMIT")
    session.run("BEGIN")
    _move(self, session, migration, segment, checkpoint, segment_id)


def _written_apart(self: BatchWriter, batch: Sequence[Prepared]) -> None:
    """A transaction for every table."""
    for at, one in enumerate(batch):
        if at:
            self._session.run("COMMIT")
            self._session.run("BEGIN")
        _write_all(self, [one])


def _always_due(held: Ledger, segment: int, link: object) -> bool:
    """A batch is written whatever the ledger holds."""
    return True


def _anyone(self: LedgerTable, ledger: Ledger, epoch: int) -> None:
    """Every epoch may write."""


def _not_looked_at(self: LedgerTable, session: LedgerSession, migration: str, epoch: int) -> None:
    """Every epoch may open."""


def _taken(self: LedgerTable, session: LedgerSession, ledger: Ledger, epoch: int) -> Ledger:
    return ledger


def _open_to_anyone(self: FileSegmentWriter) -> None:
    """The event log's epoch is not looked at."""


def _created_by_anyone(self: FileSegmentWriter, number: int, created: bool) -> None:
    """Ignores who created a segment."""


def _replaced(source: Path, name: Path) -> bool:
    """The last writer of a segment number wins."""
    os.replace(source, name)
    return True


def _sure_of_itself(self: Lead) -> None:
    """A leader that hears nothing from ZooKeeper writes on."""


def _held_for_good(self: ZooKeeperLeadership) -> bool:
    """A lease that was granted once never ends."""
    return True


def _nothing_released(self: batch_reader.FileBatchReader, up_to: int) -> None:
    """All segments stay, as an output of change events would have it."""


def _never_strict(plan: MappingPlan, known: Checkpoint | None) -> bool:
    """A row that is new according to the log may be in the target already."""
    return False


def _any_lineage(*_: object) -> str:
    """Every event log goes on from every ledger."""
    return ""


def _any_order(self: batch_reader.FileBatchReader, found: list[Manifest], manifest: Manifest) -> None:
    """Segments of two writers may come in turn."""


DELETES_DROPPED = (Patch(batch_reader, "net_images", net_without_deletes),)
NET_BY_ENDS = (Patch(batch_reader, "net_images", net_by_ends),)
FIRST_IMAGE = (Patch(batch_reader, "net_images", net_to_first_image),)
POSITION_APART = (Patch(LedgerTable, "move", _moved_apart),)
TABLES_APART = (Patch(BatchWriter, "write", _written_apart),)
FENCING_OFF = (
    Patch(target_writer, "due", _always_due),
    Patch(LedgerTable, "check_epoch", _anyone),
    Patch(LedgerTable, "check_not_newer", _not_looked_at),
    Patch(LedgerTable, "taken", _taken),
    Patch(FileSegmentWriter, "_check_epoch", _open_to_anyone),
    Patch(FileSegmentWriter, "_check_created", _created_by_anyone),
    Patch(durable, "link_new", _replaced),
    # Else two writers' segments would be told apart: another rule, which has its own mutant.
    Patch(batch_reader.FileBatchReader, "_check_follows", _any_order),
    Patch(resume, "continues", _any_lineage),
)
SPLIT_BRAIN = (
    *FENCING_OFF,
    Patch(Lead, "await_sure", _sure_of_itself),
    Patch(ZooKeeperLeadership, "held", _held_for_good),
    # Otherwise segments, numbers or rows of the other would soon stop each of them: by luck, not by a fence.
    Patch(transform_job, "_dumped", _never_strict),
    Patch(batch_reader.FileBatchReader, "release", _nothing_released),
)
STARTS_AT_LOG_END = (Patch(log_reader, "visible_end", log_end),)
