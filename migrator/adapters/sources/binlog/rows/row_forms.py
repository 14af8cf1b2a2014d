"""The beginning of a row event with complete images: one look at it tells that nothing about it is unusual."""

from __future__ import annotations

from typing import NamedTuple

from migrator.adapters.sources.binlog.events import events
from migrator.model.event import Operation

OPERATIONS = {
    **dict.fromkeys(events.WRITE_ROWS, Operation.INSERT),
    **dict.fromkeys(events.UPDATE_ROWS, Operation.UPDATE),
    **dict.fromkeys(events.DELETE_ROWS, Operation.DELETE),
}
INSERT, UPDATE, DELETE = 1, 2, 3
MARKS = {
    Operation.INSERT: bytes([INSERT]),
    Operation.UPDATE: bytes([UPDATE]),
    Operation.DELETE: bytes([DELETE]),
}
"""The byte that a change begins with, by operation (see ``row_codec``)."""
POST_HEADER = 8
"""Table number and flags."""
_NO_EXTRA_DATA = (2).to_bytes(2, "little")
"""Only its own length."""


class RowForm(NamedTuple):
    """The form of one kind of row event of a table.

    Attributes:
        head: what stands between flags and images.
        at: where the images begin, in the event with its header.
        mark: of its changes.
        images: of a change.
    """

    head: bytes
    at: int
    mark: bytes
    images: int


HEAD_AT = events.HEADER_BYTES + POST_HEADER
"""The place of a head, in the event with its header."""


def forms_of(whole: bytes, whole_update: bytes) -> dict[int, RowForm]:
    """The forms by event type; ``whole``, ``whole_update``: how complete images are announced (``LoggedTable``)."""
    return {kind: _form(kind, whole_update if kind in events.UPDATE_ROWS else whole) for kind in OPERATIONS}


def _form(kind: int, whole: bytes) -> RowForm:
    head = (_NO_EXTRA_DATA if kind in events.ROWS_V2 else b"") + whole
    operation = OPERATIONS[kind]
    return RowForm(head, HEAD_AT + len(head), MARKS[operation], 2 if operation is Operation.UPDATE else 1)
