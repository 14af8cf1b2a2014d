"""The fixture ``migration`` of the pytest plugin: a project is loaded, run under hazards, and judged; or an
incident is replayed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from migrator.errors import ConfigError
from scenarios.chaos import given_rows, play
from scenarios.chaos.addresses import is_address
from scenarios.chaos.hazards import chosen
from scenarios.chaos.incident.incident_file import unpacked
from scenarios.chaos.incident.replay import Replayed, replay
from scenarios.chaos.smallest import smaller
from scenarios.chaos.stage import Old
from scenarios.chaos.writes import counted
from scenarios.play.run_result import RunResult
from scenarios.rehearsal import copied
from verify.history import timeline
from verify.history.result import Outcome

Files = str | Path | Mapping[str, str | Path]


class ProjectTest:
    """One test of a project.

    Args:
        config: the project's ``migration.toml``.
        beside: folder of the test: names of files are looked up there first, then in the project's folder.
        out: folder of bundles.
        done: hears of each result.

    Attributes:
        result: of the last run; None before the first.
        replayed: the last incident's replay; None before the first.
    """

    def __init__(self, config: Path, beside: Path, out: Path, done: Callable[[RunResult], None]):
        self._config, self._beside, self._out, self._done = config, beside, out, done
        self._old: Old | None = None
        self.result: RunResult | None = None
        self.replayed: Replayed | None = None

    def load(self, schema: str | Path, rows: Files | None = None, number: int = 100) -> None:
        """Says what the old side is.

        Args:
            schema: a SQL file or dump, a folder of Alembic revisions, or an address, of which the structure is read.
            rows: a CSV or Parquet file named after its table, a folder of them, or files by table.
            number: rows that are made up for each table without any.

        Raises ``ConfigError`` for files that aren't there.
        """
        found = (
            {name: self._found(file) for name, file in rows.items()}
            if isinstance(rows, Mapping)
            else None
            if rows is None
            else self._found(rows)
        )
        origin = schema if isinstance(schema, str) and is_address(schema) else str(self._found(schema))
        self._old = Old(origin, given_rows.files(found), number)

    def run(
        self,
        under: Sequence[str] = (),
        changes: int = 1000,
        *,
        clients: int = 3,
        rate_per_s: float = 100.0,
        seed: int = 1,
        weights_file: str | Path | None = None,
        query_log: str | Path | None = None,
    ) -> RunResult:
        """Runs the migration under hazards (names of ``migrator scenario run --hazard list``) while clients write.

        Args:
            under: names of hazards.
            changes: row changes until the clients stop.
            clients: how many write.
            rate_per_s: row changes per second over all clients.
            seed: of everything that is drawn.
            weights_file: TOML file of weights, or the address of a database whose counters say them.
            query_log: a captured log whose transactions the clients do again, until its end or that of ``changes``.

        Raises ``ConfigError`` for a project, hazard or file that can't be used.
        """
        if self._old is None:
            raise ConfigError("nothing is loaded", remedy='call migration.load("schema.sql") first')
        kind = copied.wanted(self._config).kind("old")
        chosen(under, kind)  # a wrong name costs no server
        order = play.Order(
            self._config, self._old, tuple(under), changes, clients, rate_per_s, seed, out=self._out
        )
        if weights_file is not None:
            file = weights_file if is_address(str(weights_file)) else self._found(weights_file)
            order = replace(order, weights=counted.weights(file, kind))
        if query_log is not None:
            order = replace(order, query_log=self._found(query_log))
        self.result = play.run(order)
        self._done(self.result)
        return self.result

    def assert_holds(self, shrink_minutes: float = 0) -> None:
        """Passes only if everything was checked and held. Raises ``AssertionError`` with the witnesses.

        Args:
            shrink_minutes: how long a failed run is made smaller before the test ends; the smallest is in the words.
        """
        __tracebackhide__ = True
        if self.result is None:
            raise AssertionError("nothing was run: call migration.run() first")
        if self.result.outcome is not Outcome.HOLDS:
            raise AssertionError(said(self.result, shrink_minutes))

    def replay(self, file: str | Path) -> Replayed:
        """Replays an incident of ``migrator incident collect`` or ``shrink`` with the project as it is now.

        Raises ``ConfigError`` for a file that is none, and for an incident of another engine.
        """
        self.replayed = replay(unpacked(self._found(file)), self._config)
        return self.replayed

    def assert_mended(self) -> None:
        """Passes only if the replay was played to its end, compared rows, and found none that differs.

        Raises ``AssertionError`` with what it found.
        """
        __tracebackhide__ = True
        if self.replayed is None:
            raise AssertionError("nothing was replayed: call migration.replay() first")
        found = self.replayed.found
        if found.anything() or not found.checked:
            lines = [f"{self.replayed.judgement.value}: {self.replayed.reason}", *found.lines()]
            raise AssertionError("\n  ".join(lines))

    def _found(self, file: str | Path) -> Path:
        for folder in (self._beside, self._config.parent):
            if (folder / file).exists():
                return folder / file
        return Path(file)


def said(result: RunResult, minutes: float = 0) -> str:
    """A result in words: the verdict with its reason, each check, and where everything is kept.

    ``minutes``: how long a failed run is made smaller.
    """
    lines = [f"{result.outcome.value}: {result.reason or result.error}"]
    for check in result.checks:
        lines.append(f"  {check.code} {check.title}: {check.outcome.value} ({check.checked} {check.unit})")
        lines += [f"    {check.reason}"] if check.reason else []
        for case in check.witnesses:
            lines += [f"    {line}" for line in timeline.text(case).rstrip().splitlines()]
    lines += [f"  {line}" for line in smaller(result, minutes, lambda _: None)]
    return "\n".join([*lines, f"  kept in {result.bundle}"])
