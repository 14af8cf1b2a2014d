"""Dump requests and the pace in one line each."""

from __future__ import annotations

from migrator.model.progress import TableDump
from migrator.model.requests.request import DumpRequest, RequestBook


def request_line(request: DumpRequest, progress: tuple[TableDump, ...] = ()) -> str:
    """Shows a request; ``progress``: its own tables'."""
    tables = ", ".join(table.name for table in request.tables)
    done = sum(table_dump.done for table_dump in progress)
    share = f"; {done} of {len(request.tables)} table(s) read" if progress else ""
    return f"{request.id}  {request.state.value}  {tables}: {request.scope.text()}{share}"


def pace_line(book: RequestBook) -> str:
    """Shows the pace."""
    pace = book.pace
    rows = f"{pace.chunk_rows:,} rows a chunk" if pace.chunk_rows else "chunks adapt"
    bound = f", p95 below {pace.p95_s:g} s" if pace.p95_s else ""
    workers = f", {pace.workers} worker(s)" if pace.workers else ""
    load = f", at most {pace.active_sessions} active session(s)" if pace.active_sessions else ""
    load += f", at most {pace.replica_lag_s:g} s of replica lag" if pace.replica_lag_s else ""
    load += f", {pace.share:.0%} of the time while others work" if pace.share else ""
    return f"pace: {rows}, {pace.delay_s:g} s between chunks{bound}{workers}{load}"
