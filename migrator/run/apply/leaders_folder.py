"""The leader's own folder, in which it puts rows for Spark to read."""

from __future__ import annotations

import shutil
from pathlib import Path


def leaders_folder(parent: Path, epoch: int) -> Path:
    """The folder of the leader of an epoch; those of earlier leaders are removed.

    Machines may share the state folder. A leader that was replaced while it slept wakes up, and before it
    notices may put its batch where it did before. If its successor, which has just put its own rows there,
    read that one instead, it would apply a batch for the second time and its own never, under a ledger that
    says otherwise: the rows are no part of what epochs fence in event log and target. Where the folder is
    gone, the replaced one meets an error.

    Args:
        parent: kept for such folders; what else is in it came from versions that put the rows there.
        epoch: a later leader's folder is left alone, as we may be the one that slept.
    """
    own = parent / str(epoch)
    for entry in parent.iterdir() if parent.is_dir() else ():
        if entry.name.isdigit() and int(entry.name) >= epoch:
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
    return own
