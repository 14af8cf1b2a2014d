"""Log sequence numbers, and the positions made of them.

An LSN is a byte place in the WAL, printed as two hexadecimal halves, ``16/B374D848``. Three kinds of position
are made here; one order puts them all on one line:

- a commit: order = start of its commit record (Begin's ``final_lsn``), token = end of that record;
- a place ``E`` of which only "everything that ends at or before E" is known (a keepalive, a slot's confirmed
  place, the insert position): order = ``E - 1``. A later commit record may start exactly at E, so with order
  E that commit would look as if it had been seen; with ``E - 1`` it doesn't, while every record that ends at
  or before E starts below E, so its order is at most ``E - 1``.

Tokens read ``LSN@SYSTEM/TIMELINE``, with the server's system identifier and the timeline of its log (where that is
known, see ``server_log``), so that a position is never used on another server or another history. Behind a ``#``
follows what ``same_log`` wants to find there again.
"""

from __future__ import annotations

from migrator.errors import SourceError
from migrator.model.position import Position

SHORT_PAGE_HEADER_BYTES = 24
LONG_PAGE_HEADER_BYTES = 40


def parse_lsn(text: str) -> int:
    """``16/B374D848`` as a number. Raises SourceError for anything else."""
    high, slash, low = text.partition("/")
    try:
        if not slash:
            raise ValueError("no slash")
        return (int(high, 16) << 32) | int(low, 16)
    except ValueError as error:
        raise SourceError(f"{text!r} is not a log sequence number", cause=str(error)) from error


def format_lsn(lsn: int) -> str:
    """A number as ``16/B374D848``."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def commit_position(final_lsn: int, end_lsn: int, system: str) -> Position:
    """The position of a commit record that starts at ``final_lsn`` and ends at ``end_lsn``."""
    return Position(final_lsn, f"{end_lsn >> 32:X}/{end_lsn & 0xFFFFFFFF:X}@{system}")


def position_up_to(lsn: int, system: str) -> Position:
    """The position "every commit record that ends at or before ``lsn``"; see the text above for the -1."""
    return Position(lsn - 1, f"{format_lsn(lsn)}@{system}")


def server_name(system: str, timeline: int | None) -> str:
    """Names the server: a promoted standby has its old primary's system identifier and another timeline.

    Args:
        system: system identifier.
        timeline: on which it writes; None for a standby, which writes on none.
    """
    return f"a standby of system {system}" if timeline is None else f"system {system}, timeline {timeline}"


def token_parts(position: Position) -> tuple[int, str]:
    """LSN of a position's token, and what it says about the server. Raises SourceError if it isn't one of ours."""
    lsn, _, system = position.token.partition("@")
    return parse_lsn(lsn), system.partition("#")[0]


def without_page_header(lsn: int, page_bytes: int, segment_bytes: int) -> int:
    """An insert position moved back to its page's start when only that page's header lies between.

    The insert position skips the header of a fresh page, the walsender reports the end of the last record
    before it. On an idle server the log would therefore never be read "up to" the insert position; no record
    starts or ends inside a header, so both places mean the same.
    """
    header = LONG_PAGE_HEADER_BYTES if lsn % segment_bytes < page_bytes else SHORT_PAGE_HEADER_BYTES
    return lsn - header if lsn % page_bytes == header else lsn
