"""``migrator dump``: requests to dump rows again, while the migration runs or before it does."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from migrator.cli.kept import keep, reason_option
from migrator.cli.options import Amount, config_option, json_option
from migrator.config import project as configuration
from migrator.errors import RequestError
from migrator.model.limits import LONGEST_PAUSE_S, MOST_CHUNK_ROWS, MOST_WORKERS
from migrator.model.progress import TableDump
from migrator.model.requests.request import DumpRequest, RequestBook, new_token
from migrator.model.requests.words import pace_line, request_line
from migrator.run.commands.dump_order import DumpOrder
from migrator.wiring import coordination as wiring_coordination
from migrator.wiring import parts as wiring


@click.group()
def dump() -> None:
    """Dump rows again, in order with the log, while the migration runs; and set the pace of all dumps."""


@dump.command()
@config_option
@click.option("--table", "tables", multiple=True, help="A source table; may be repeated. Default: all.")
@click.option("--from", "low", default=None, metavar="KEY", help="First key, inclusive.")
@click.option("--to", "high", default=None, metavar="KEY", help="Last key, inclusive.")
@click.option("--key", "keys", multiple=True, metavar="KEY", help="A key; may be repeated.")
@click.option(
    "--keys-file",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    help="Keys, one a line.",
)
@click.option("--where", "predicate", default=None, metavar="SQL", help="Rows that it is true for.")
@reason_option
@json_option
def start(
    config: Path,
    tables: tuple[str, ...],
    low: str | None,
    high: str | None,
    keys: tuple[str, ...],
    keys_file: Path | None,
    predicate: str | None,
    reason: str,
    as_json: bool,
) -> None:
    """Ask for another dump of all tables, some tables, or some rows of one table.

    A KEY of several columns is one CSV row; binary values are hexadecimal digits.
    """
    if predicate is not None and not predicate.strip():
        raise RequestError(
            "the predicate is empty",
            where="--where",
            remedy="give an SQL expression, or leave the option out for all rows",
        )
    all_keys = (*keys, *(_lines(keys_file) if keys_file is not None else ()))
    order = DumpOrder(tables, low, high, all_keys, predicate or "")
    settings = replace(configuration.load(config), reason=reason)
    request = wiring.start_dump(settings, order).requests[-1]
    started = request_line(request, ())
    if as_json:
        _print_json(request_document(request))
    else:
        click.echo(f"started {started}")
    keep(settings, "dump start", started)


def _print_json(found: dict[str, Any]) -> None:
    click.echo(json.dumps(found, default=plain, ensure_ascii=False, indent=2))


def _lines(file: Path) -> tuple[str, ...]:
    try:
        lines = tuple(line for line in file.read_text("utf-8").splitlines() if line)
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(
            "the file of keys can't be read",
            where=f"--keys-file {file}",
            cause=str(error),
            remedy="name a readable UTF-8 file with one key a line",
        ) from error
    if not lines:
        raise RequestError(
            "the file of keys is empty",
            where=f"--keys-file {file}",
            remedy="write one key a line into it",
        )
    return lines


def _step(name: str, change: Callable[[RequestBook, str], RequestBook], text: str) -> click.Command:
    @click.command(name, help=text)
    @config_option
    @reason_option
    @json_option
    @click.argument("request")
    def command(config: Path, reason: str, as_json: bool, request: str) -> None:
        settings = replace(configuration.load(config), reason=reason)
        book = wiring_coordination.requests(settings).update(lambda old: change(old, request))
        said = request_line(book.request(request), ())
        if as_json:
            _print_json(request_document(book.request(request)))
        else:
            click.echo(said)
        keep(settings, f"dump {name}", said)

    return command


for command in (
    _step("pause", RequestBook.pause, "Read no further chunk of REQUEST until it is resumed."),
    _step("resume", RequestBook.resume, "Let REQUEST go on where it was."),
    _step("cancel", RequestBook.cancel, "End REQUEST where it is; what it brought stays."),
    _step(
        "restart",
        lambda book, request: book.restart(request, new_token()),
        "Begin REQUEST anew, whatever became of it.",
    ),
):
    dump.add_command(command)


@dump.command("list")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Machine-readable.")
def list_requests(config: Path, as_json: bool) -> None:
    """Show all requests with their progress, and the pace."""
    book, progress = wiring.dumps_asked_for(configuration.load(config))
    if as_json:
        click.echo(json.dumps(document(book, progress), default=plain, indent=2))
        return
    for line in request_lines(book, progress):
        click.echo(line)


@dump.command()
@config_option
@click.option(
    "--chunk-rows",
    type=click.IntRange(0, MOST_CHUNK_ROWS),
    default=None,
    help="Rows of a chunk; 0: by its time.",
)
@click.option(
    "--delay", "delay_s", type=Amount(0, LONGEST_PAUSE_S), default=None, help="Seconds between two chunks."
)
@click.option(
    "--p95",
    "p95_s",
    type=Amount(0, LONGEST_PAUSE_S),
    default=None,
    help="Seconds that 95% of chunk reads should stay below: else smaller chunks, longer pauses. 0: no bound.",
)
@click.option(
    "--workers",
    type=click.IntRange(0, MOST_WORKERS),
    default=None,
    help="Chunks read at the same time; 0: as configured ([capture] dump_workers).",
)
@click.option(
    "--max-active",
    "active_sessions",
    type=click.IntRange(0),
    default=None,
    help="While more sessions of others are active on the source, read ever more slowly. 0: as configured.",
)
@click.option(
    "--max-lag",
    "replica_lag_s",
    type=Amount(0),
    default=None,
    help="While a replica of the source is more seconds behind, the same. 0: as configured.",
)
@click.option(
    "--share",
    type=Amount(0, 1),
    default=None,
    help="Share of the time that chunks are read while others work on the source; 1: all. 0: as configured.",
)
@reason_option
@json_option
def pace(config: Path, reason: str, as_json: bool, **options: float | None) -> None:
    """Show or change how gently chunks are read, by the first dump too; holds from the next chunk on."""
    changes: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    settings = replace(configuration.load(config), reason=reason)
    store = wiring_coordination.requests(settings)
    book = (
        store.update(lambda old: replace(old, pace=replace(old.pace, **changes))) if changes else store.read()
    )
    if as_json:
        _print_json(pace_document(book))
    else:
        click.echo(pace_line(book))
    if changes:
        keep(settings, "dump pace", pace_line(book))


def request_lines(book: RequestBook, progress: tuple[TableDump, ...]) -> list[str]:
    """Requests and pace in words, for ``list`` and ``status``."""
    lines = []
    for request in book.requests:
        own = tuple(table_dump for table_dump in progress if table_dump.request == request.name())
        lines.append(request_line(request, own))
        lines += [f"    {_progress(table_dump)}" for table_dump in own]
        lines += [f"    {request.reason}"] if request.reason else []
    return [*(lines or ["no dump requests"]), pace_line(book)]


def _progress(dump: TableDump) -> str:
    seen = dump.rows + dump.dropped_rows
    about = f" of about {dump.estimated_rows:,}" if dump.estimated_rows and not dump.done else ""
    state = "read" if dump.done else "under way"
    chunks = f"{dump.chunks:,} chunks ({dump.dropped_rows:,} dropped)"
    return f"{dump.table.name}: {state}, {seen:,}{about} rows in {chunks}"


def document(book: RequestBook, progress: Sequence[TableDump]) -> dict[str, Any]:
    """The document of `migrator dump list --json` (docs/schemas/dumps.schema.json)."""
    return {"book": asdict(book), "progress": [asdict(table_dump) for table_dump in progress]}


def request_document(request: DumpRequest) -> dict[str, Any]:
    """The document of the commands that change one request (docs/schemas/dump-request.schema.json)."""
    return {"format": 1, "request": asdict(request)}


def pace_document(book: RequestBook) -> dict[str, Any]:
    """The document of `migrator dump pace --json` (docs/schemas/dump-pace.schema.json)."""
    return {"format": 1, "pace": asdict(book.pace)}


def plain(value: object) -> object:
    """Bytes of a binary key as hexadecimal digits, an enum by its value."""
    return value.hex() if isinstance(value, bytes) else getattr(value, "value", str(value))
