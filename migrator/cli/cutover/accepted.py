"""The record of a plan that was accepted, as commands ask for it."""

from __future__ import annotations

from migrator.errors import CutoverError
from migrator.model.cutover.record import Record
from migrator.ports.cutover import CutoverBook


def accepted(with_book: CutoverBook) -> Record:
    """Returns the record. Raises ``CutoverError`` before a plan was accepted."""
    record = with_book.read()
    if record is None:
        raise CutoverError(
            "no plan of a cut-over was accepted",
            remedy="look at `migrator cutover plan`, then `migrator cutover plan --accept`",
        )
    return record
