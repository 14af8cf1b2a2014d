"""The effect of a TRUNCATE of source tables on a row-wise target."""

from __future__ import annotations

from migrator.errors import MappingError
from migrator.model.progress import Checkpoint
from migrator.ports.eventlog import Batch
from transforms.analysis.plan import MappingPlan


def emptied(plan: MappingPlan, batch: Batch, known: Checkpoint | None) -> bool:
    """Tells whether the target loses all its rows, because every table that feeds it was emptied in the batch.

    A table whose dump the batches before didn't know has no rows in it, whatever the mirror has of an earlier time:
    where it joins a begun migration, that it is emptied first takes nothing from a row-wise target.

    Args:
        plan: of the target's mapping.
        batch: says which tables were emptied.
        known: the checkpoint of the batch before, if there was one.

    Raises ``MappingError`` when some were and others were not: which of the target's rows came from which
    table isn't kept, and the images of the rows that are gone aren't in the log.
    """
    names = {table.name for table in batch.emptied()}
    gone = names & set(plan.reads)
    rest = set(plan.reads) - gone
    there = set(plan.reads) if known is None else {dump.table.name for dump in known.dumps}
    if rest and not gone & there:
        return False
    if gone and rest:
        raise MappingError(
            f"{', '.join(sorted(gone))} was emptied by TRUNCATE, and target table {plan.target.name!r} has rows of"
            " other tables as well",
            where=plan.target.where(),
            cause=f"which of its rows came from {', '.join(sorted(gone))} and which from {', '.join(sorted(rest))}"
            " isn't kept, and a TRUNCATE has no row images",
            remedy="start the migration anew (docs/how-to/start-anew.md; nothing of this batch is in the"
            " target); then use DELETE instead of TRUNCATE while it runs, or map each source table into a"
            " target table of its own",
        )
    return bool(gone)
