"""Tables about which a verification doesn't know enough: the reason, and what would settle the rest."""

from __future__ import annotations

from collections.abc import Sequence

from migrator.model.progress import BadRow
from verify.tables.compare.compare import Counts
from verify.tables.rounds.live import Round
from verify.tables.rounds.progress import TableProgress

CATCH_UP = "start `migrator run`, wait until it has caught up, then verify again"
_NAMED = 10
_MORE_TIME = "give it more time (--within), or name fewer tables (--table)"
_IF_IT_LAGS = "if the target lags, let `migrator run` catch up first"


def not_judged(table: TableProgress) -> str:
    """Returns why not all of a table's rows were compared once, or nothing if they were."""
    if table.unknown:
        return table.unknown
    if table.rounds and not table.cut:
        return ""
    if not table.late:
        return "no round compared it"
    if not table.rounds:
        return f"none of its rows were compared: {table.late}"
    return (
        f"only a part of its rows was compared, {table.aside_keys:,} keys of them are unsettled: {table.late}"
    )


def not_settled(table: TableProgress, counts: Counts, rounds: Sequence[Round]) -> str:
    """Returns why keys of a table that was compared are set aside still."""
    if table.late:
        return f"{counts.set_aside:,} keys are unsettled: {table.late}"
    last = rounds[-1]
    if not last.reached:
        return f"{counts.set_aside} keys differ, but {last.detail}"
    whole = "; --whole reads one snapshot of each side" if table.apart and table.sizes else ""
    return f"{counts.set_aside} keys did not settle in {len(rounds)} rounds{whole}"


def not_migrated(rows: Sequence[BadRow]) -> str:
    """Says which keys have no row in the target because that refused theirs."""
    keys = "; ".join(f"{one.key_text()}{' (dropped)' if one.dropped else ''}" for one in rows[:_NAMED])
    more = f"; and {len(rows) - _NAMED:,} more" if len(rows) > _NAMED else ""
    return f"{len(rows):,} rows are set aside, the target has none of them (`migrator rows set-aside`): {keys}{more}"


def settled_by(table: TableProgress, rounds: Sequence[Round]) -> str:
    """Returns what would settle a table whose verdict is unknown."""
    if table.unknown:
        return "" if rounds and rounds[-1].reached else CATCH_UP
    if table.late and (table.cut or not table.rounds):
        return f"{_MORE_TIME}; {_IF_IT_LAGS}"
    if not rounds or not rounds[-1].reached:
        return CATCH_UP
    if table.late:
        return f"{_MORE_TIME}, or verify while those rows are written less often; {_IF_IT_LAGS}"
    return "verify again with more rounds (--max-rounds), or while those rows are written less often"
