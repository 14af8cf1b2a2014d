"""The rest of a transaction of which a part was delivered before the log was read again."""

from __future__ import annotations

from migrator.model.event import TransactionPart


def rest_of(part: TransactionPart, index: int) -> TransactionPart:
    """The part without the changes before ``index``: they were delivered before the log was read again."""
    if index <= part.first_index:
        return part
    known = min(index - part.first_index, part.size())
    runs, left = [], known
    for run in part.runs:
        if left < len(run.items):
            runs.append(run._replace(items=run.items[left:]))
        left = max(0, left - len(run.items))
    return part._replace(first_index=part.first_index + known, runs=tuple(runs))
