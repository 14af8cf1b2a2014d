"""A repair as one self-contained HTML page: what was planned, what was done, each table and key before and
after."""

from __future__ import annotations

from html import escape

from migrator.cli.repair.report import REPAIRED, UNKNOWN, Outcome, Shown
from verify.report import page
from verify.tables.findings.differing import Values

_OPEN_MAX = 10
_REMEDIES = {
    "different": "Some rows still differ. Look at what the requests say below, then repair again; a row that comes"
    " back is written by someone else.",
    "unknown": "Not every row is known to be right. Look at what the requests say below, and verify again when less"
    " is written.",
}
_PLAN = "Nothing was written to any database. The command below does what is planned, through the run that goes on."
_NOTES = (
    "The verdict is about the rows that were to be repaired; the tables' own verdicts are about all their rows.",
    "Who damaged the rows: a repair removes the damage and not its cause.",
    "What `migrator verify` can't detect: its page lists it.",
)


def html_report(migration: str, started_at: str, elapsed_s: float, done: Outcome, command: str) -> str:
    """The whole page; ``command``: what does what is planned, or what repairs once more."""
    verdict = done.verdict()
    subject = f"dry run of a repair of {migration}" if done.dry_run else f"repair of {migration}"
    remedy = (_PLAN if verdict == "different" else "") if done.dry_run else _REMEDIES.get(verdict, "")
    body = [
        page.header(verdict, subject, _facts(started_at, elapsed_s, done)),
        page.panel("What to do", f"<p>{escape(remedy)}</p>{page.command(command)}") if remedy else "",
        "<h2>What there is to repair</h2>" if done.dry_run else "<h2>Before and after</h2>",
        f'<div class="cards">{"".join(_card(done, *verdicts) for verdicts in done.verdicts)}</div>',
        _planned(done),
        "" if done.dry_run else _requests(done),
        _rows(done),
        "<h2>What this page does not say</h2>",
        page.bullets(_NOTES),
    ]
    return page.page(f"{verdict}: {subject}", body)


def _facts(started_at: str, elapsed_s: float, done: Outcome) -> list[tuple[str, str]]:
    asked = sum(sum(counts.values()) for counts in done.before.values())
    left = sum(sum(counts.values()) for counts in done.after.values())
    return [
        ("to repair", f"{asked:,} rows in {', '.join(done.before)}" if asked else "nothing"),
        ("done", "nothing: this is a dry run") if done.dry_run else ("still different", f"{left:,} of them"),
        ("when", f"{started_at}, {elapsed_s:.1f} s, verification included"),
    ]


def _card(done: Outcome, table: str, before: str, after: str) -> str:
    asked, left = done.before.get(table, {}), done.after.get(table, {})
    verdict = done.table_verdict(table)
    gone = sum(asked.values()) - sum(left.values())
    settled = UNKNOWN if table in done.open else REPAIRED
    sides = [
        ("before", before, sorted(asked.items())),
        ("after", after, [(settled, gone), *sorted(left.items())]),
    ]
    if done.dry_run:
        sides = [("now", before, sorted(asked.items()))]
    shown = "".join(
        f'<p>{name}, the whole table: <b class="verdict {was}">{escape(was)}</b></p>'
        f"{page.bar(f'{table} {name}', segments)}{page.numbers(segments)}"
        for name, was, segments in sides
    )
    other = done.others.get(table, 0)
    note = f"<p>{other:,} other rows differ, which weren't to be repaired</p>" if other else ""
    when = "" if done.dry_run else " afterwards"
    open_note = f"<p>not every row could be judged{when}</p>" if table in done.open else ""
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
                escape(", ".join(step.sources) + (", whose dump begins it" if step.joined() else "")),
            ],
            right=(1, 3),
        )
        for step in done.planned
    ]
    head = ("target table", "rows", "repaired by", "about rows dumped", "of")
    return f"<h2>What was planned</h2>{page.table(head, rows, 'What was planned', (1, 3))}"


def _requests(done: Outcome) -> str:
    rows = [page.row([escape(cell) for cell in request]) for request in done.requests]
    return f"<h2>What was done</h2>{page.table(('request', 'became', 'reason'), rows, 'Requests')}"


def _rows(done: Outcome) -> str:
    if not done.samples:
        return ""
    items = [_item(sample, done.dry_run, len(done.samples) <= _OPEN_MAX) for sample in done.samples]
    statuses = sorted({_status(sample, done.dry_run) for sample in done.samples})
    groups = list(dict.fromkeys(sample.table for sample in done.samples))
    total = sum(sum(counts.values()) for counts in done.before.values())
    note = f"<p class=dim>{len(items):,} of {total:,} rows that were to be repaired.</p>"
    return f"<h2>Rows</h2>{note}{page.browser(statuses, groups, items, 'Table')}"


def _status(shown: Shown, dry_run: bool) -> str:
    if dry_run:
        return shown.before
    return shown.after if shown.after in (REPAIRED, UNKNOWN) else f"still {shown.after}"


def _item(shown: Shown, dry_run: bool, opened: bool) -> str:
    still = not dry_run and shown.after not in (REPAIRED, UNKNOWN)
    sides = [shown.mapped, shown.target, *([shown.mapped_after, shown.target_after] if still else [])]
    head = (
        ["column", "mapped row", "target row"]
        if dry_run
        else ["column", "mapped row before", "target row before"]
    )
    head += ["mapped row after", "target row after"] if still else []
    rows = []
    for place, column in enumerate(shown.columns):
        cells = [_cell(side, place) for side in sides]
        rows.append(page.row([escape(column), *cells], "differs" if _unequal(shown, place) else ""))
    verb = "is" if dry_run else "was"
    title = (
        f"<b>{escape(shown.table)}</b> {', '.join(map(page.value, shown.key))}, {verb} {escape(shown.before)}"
    )
    return page.item(_status(shown, dry_run), shown.table, title, page.table(head, rows, "Cells"), opened)


def _unequal(shown: Shown, place: int) -> bool:
    return shown.mapped is None or shown.target is None or shown.mapped[place] != shown.target[place]


def _cell(side: Values | None, place: int) -> str:
    return '<span class="null">no row</span>' if side is None else page.value(side[place])
