"""A repair as one self-contained HTML page: what was planned, what was done, each table and key before and after."""

from __future__ import annotations

from html import escape

from migrator.cli.repair_report import REPAIRED, UNKNOWN, Outcome, Shown
from verify import page
from verify.differing import Values

_OPEN_MAX = 10
_REMEDIES = {
    "different": "Some rows still differ. Look at what the requests say below, then repair again; a row that comes"
    " back is written by someone else.",
    "unknown": "Not every row is known to be right. Look at what the requests say below, and verify again when less"
    " is written.",
}
_AGAIN = "migrator repair"
_NOTES = (
    "The verdict is about the rows that were to be repaired; the tables' own verdicts are about all their rows.",
    "Who damaged the rows: a repair removes the damage and not its cause.",
    "What `migrator verify` can't detect: its page lists it.",
)


def html_report(migration: str, started_at: str, elapsed_s: float, done: Outcome) -> str:
    """The whole page."""
    verdict = done.verdict()
    asked = sum(sum(counts.values()) for counts in done.before.values())
    left = sum(sum(counts.values()) for counts in done.after.values())
    facts = [
        ("to repair", f"{asked:,} rows in {', '.join(done.before)}"),
        ("still different", f"{left:,} of them"),
        ("when", f"{started_at}, {elapsed_s:.1f} s, verification included"),
    ]
    remedy = _REMEDIES.get(verdict, "")
    body = [
        page.header(verdict, f"repair of {migration}", facts),
        page.panel("What to do", f"<p>{escape(remedy)}</p>{page.command(_AGAIN)}") if remedy else "",
        "<h2>Before and after</h2>",
        f'<div class="cards">{"".join(_card(done, *verdicts) for verdicts in done.verdicts)}</div>',
        _planned(done),
        _requests(done),
        _rows(done),
        "<h2>What this page does not say</h2>",
        page.bullets(_NOTES),
    ]
    return page.page(f"{verdict}: repair of {migration}", body)


def _card(done: Outcome, table: str, before: str, after: str) -> str:
    asked, left = done.before.get(table, {}), done.after.get(table, {})
    verdict = done.table_verdict(table)
    gone = sum(asked.values()) - sum(left.values())
    settled = UNKNOWN if table in done.open else REPAIRED
    sides = [
        ("before", before, sorted(asked.items())),
        ("after", after, [(settled, gone), *sorted(left.items())]),
    ]
    shown = "".join(
        f'<p>{name}: all its rows <b class="verdict {was}">{escape(was)}</b></p>'
        f"{page.bar(f'{table} {name}', segments)}{page.numbers(segments)}"
        for name, was, segments in sides
    )
    other = done.others.get(table, 0)
    note = f"<p>{other:,} other rows differ, which weren't to be repaired</p>" if other else ""
    open_note = "<p>not every row could be judged afterwards</p>" if table in done.open else ""
    return (
        f'<article class="card"><div class="top"><h3>{escape(table)}</h3>'
        f'<span class="verdict {verdict}">{verdict}</span></div>{shown}{note}{open_note}</article>'
    )


def _planned(done: Outcome) -> str:
    rows = [
        page.row(
            [
                escape(step.target),
                f"{step.keys:,}",
                escape(step.way) + (f" <span class=dim>({escape(step.why)})</span>" if step.why else ""),
                f"{step.rows:,}",
                escape(", ".join(step.sources)),
            ],
            right=(1, 3),
        )
        for step in done.planned
    ]
    head = ("target table", "rows", "repaired by", "about rows read", "from")
    return f"<h2>What was planned</h2>{page.table(head, rows, 'What was planned', (1, 3))}"


def _requests(done: Outcome) -> str:
    rows = [page.row([escape(cell) for cell in request]) for request in done.requests]
    return f"<h2>What was done</h2>{page.table(('request', 'became', 'reason'), rows, 'Requests')}"


def _rows(done: Outcome) -> str:
    if not done.samples:
        return ""
    items = [_item(each, len(done.samples) <= _OPEN_MAX) for each in done.samples]
    statuses = sorted({_status(each) for each in done.samples})
    groups = list(dict.fromkeys(each.table for each in done.samples))
    total = sum(sum(counts.values()) for counts in done.before.values())
    note = f"<p class=dim>{len(items):,} of {total:,} rows that were to be repaired.</p>"
    return f"<h2>Rows</h2>{note}{page.browser(statuses, groups, items, 'Table')}"


def _status(shown: Shown) -> str:
    return shown.after if shown.after in (REPAIRED, UNKNOWN) else f"still {shown.after}"


def _item(shown: Shown, opened: bool) -> str:
    still = shown.after not in (REPAIRED, UNKNOWN)
    sides = [shown.mapped, shown.target, *([shown.mapped_after, shown.target_after] if still else [])]
    head = ["column", "mapped row before", "target row before"]
    head += ["mapped row after", "target row after"] if still else []
    rows = []
    for place, column in enumerate(shown.columns):
        cells = [_cell(side, place) for side in sides]
        rows.append(page.row([escape(column), *cells], "differs" if _unequal(shown, place) else ""))
    title = (
        f"<b>{escape(shown.table)}</b> {', '.join(map(page.value, shown.key))}, was {escape(shown.before)}"
    )
    return page.item(_status(shown), shown.table, title, page.table(head, rows, "Cells"), opened)


def _unequal(shown: Shown, place: int) -> bool:
    return shown.mapped is None or shown.target is None or shown.mapped[place] != shown.target[place]


def _cell(side: Values | None, place: int) -> str:
    return '<span class="null">no row</span>' if side is None else page.value(side[place])
