"""Collects an incident: from the event log, the servers and the reports, whatever of them can be had."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from migrator.config import project as configuration
from migrator.config.project import Settings
from migrator.errors import ConfigError, MigratorError
from migrator.model.codecs.codec import checkpoint_to_json
from migrator.model.table import TableSchema
from migrator.wiring.gates.judge import sides
from scenarios.chaos.incident import (
    event_log,
    failure,
    from_source,
    from_target,
    history,
    privacy,
    project_files,
    structure,
)
from scenarios.chaos.incident.failure import Expected, Failure
from scenarios.chaos.incident.from_source import Present
from scenarios.chaos.incident.from_target import as_json, public
from scenarios.chaos.incident.halted import last_error
from scenarios.chaos.incident.history import History, Identity
from scenarios.chaos.incident.incident_file import MOST_BYTES, Incident, versions
from scenarios.chaos.incident.structure import Structure
from scenarios.rehearsal import copied
from scenarios.rehearsal.copied import Wanted
from transforms.load import load_mapping
from transforms.registry import TargetMapping

MOST_ROWS = 5_000
"""Rows of the old side that an incident has at most, unless more are asked for."""
_WINDOW = 200
"""Transactions before and after a position."""


@dataclass(frozen=True)
class Wish:
    """The part of everything that is asked for.

    Attributes:
        keys: rows of the old side, as (table, values of the key); with their neighbours by foreign keys.
        position: a place in the source's log: the transactions around it.
        most_rows: rows of the old side at most.
        anonymise: whether values are replaced.
        treatments: by (table, column), over the usual ones.
        halted: the named error with which the run stopped.
        expected: values that should be in the target, as (target, key, column, value).
        key: of the pseudonyms, for tests.
    """

    keys: Sequence[tuple[str, tuple[str, ...]]] = ()
    position: int | None = None
    most_rows: int = MOST_ROWS
    anonymise: bool = False
    treatments: Mapping[tuple[str, str], str] = field(default_factory=dict)
    halted: str = ""
    expected: Sequence[tuple[str, tuple[str, ...], str, str]] = ()
    key: bytes = b""


@dataclass
class _Found:
    """The parts so far, and reasons for what can't be had."""

    anonymise: bool = False
    missing: list[dict[str, str]] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    parts: dict[str, str] = field(default_factory=dict)

    def lacks(self, part: str, why: str | MigratorError) -> None:
        """Notes a part that can't be had; where values are replaced, without the words of a server."""
        if isinstance(why, MigratorError):
            why = why.what if self.anonymise or not why.cause else f"{why.what}: {why.cause}"
        self.missing.append({"part": part, "why": why})


def collected(config: Path, wish: Wish) -> Incident:
    """The incident of a project, of whatever can be reached now.

    Raises ``ConfigError`` for a project or a wish that can't be used, ``MigratorError`` where there isn't a single
    table, or an original value would be left.
    """
    project, found = copied.wanted(config), _Found(wish.anonymise)
    settings = _settings(config, found)
    targets = _targets(project, found)
    report, seen = _report(project, found)
    seen = _halted(seen, settings, project, wish, found)
    seen = _expecting(seen, wish, targets)
    kind = project.kind("old")
    kept = event_log.read(_state(project) / "eventlog", kind)
    for why in kept.lacking:
        found.lacks("event log", why)
    present = _present(settings, targets, report, wish, found)
    tables = {**kept.schemas, **(present.schemas if present else {})}
    names = [name for one in targets for name in one.sources] or [*tables]
    known = structure.of_schemas(
        kind,
        project.text("source", "schema", "public") if kind == "postgresql" else "",
        [tables[name] for name in dict.fromkeys(names) if name in tables],
        present.references if present else (),
    )
    if not known.tables:
        raise MigratorError(
            "there is nothing to collect",
            where=str(_state(project) / "eventlog"),
            cause="; ".join(f"{one['part']}: {one['why']}" for one in found.missing),
            remedy="collect where the run's state is, or where the source can be reached",
        )
    whole = _together(kept, present, known)
    part = _chosen(whole, known, _seeds(report, wish, whole, known), wish, found)
    code, left = project_files.code(project)
    found.left += left
    if kept.checkpoint is not None:
        checkpoint = public(checkpoint_to_json(kept.checkpoint), wish.anonymise)
        found.parts["log/checkpoint.json"] = as_json(checkpoint)
    found.parts["log/segments.json"] = as_json(kept.segments)
    if settings is not None:
        found.parts |= from_target.parts(settings, [one.name for one in targets], wish.anonymise, found.lacks)
    incident = _sized(Incident(known, part, seen, {}, found.parts, {}))
    return _finished(incident, project, code, report, wish, found, targets)


def _finished(
    incident: Incident,
    project: Wanted,
    code: Mapping[str, str],
    report: Mapping[str, Any] | None,
    wish: Wish,
    found: _Found,
    targets: Sequence[TargetMapping],
) -> Incident:
    """The incident with code, settings and facts; under pseudonyms where that is wished for."""
    places, parts = project_files.names_of_places(project), dict(incident.parts)
    name = "incident" if wish.anonymise else project.text("migration", "name", "incident")
    files = {"migration.toml": project_files.for_replay(project, name), **code}
    facts = {
        "anonymised": False,
        "engines": {"source": project.kind("old"), "target": project.kind("new")},
        "versions": versions(),
        "asked_for": {
            "keys": len(wish.keys),
            "position": None if wish.anonymise else wish.position,
            "most_rows": wish.most_rows,
        },
        "missing": found.missing,
        "left_out": found.left,
    }
    if not wish.anonymise:
        parts["settings.toml"] = project_files.without_secrets(project)
        if report is not None:
            parts["verify/verify.json"] = as_json(report)
        return replace(incident, project=files, parts=parts, facts=facts)
    clean = {file: project_files.without_addresses(text, places) for file, text in files.items()}
    facts["names_in_code"] = sum(any(one in text for text in clean.values()) for one in places)
    facts["left_out"] = [*found.left, "settings.toml and verify/verify.json: they tell of places and values"]
    links = [link for one in targets for link in one.links or ()]
    facts["missing"] = [
        {name: project_files.without_places(text, places) for name, text in one.items()}
        for one in found.missing
    ]
    named = replace(incident, project=clean, parts=parts, facts=facts)
    return privacy.pseudonymised(named, privacy.Privacy(wish.treatments, links, places, wish.key))


def _sized(incident: Incident) -> Incident:
    """The incident, if it isn't too large. Raises ``ConfigError``."""
    size = sum(len(text) for text in incident.content().values())
    if size > MOST_BYTES:
        raise ConfigError(
            "the incident is too large",
            where=f"{size:,} characters, {incident.history.rows()} row images",
            cause=f"a file holds {MOST_BYTES:,} at most",
            remedy="ask for fewer rows (--most-rows), or for some (--keys, --around)",
        )
    return incident


def _settings(config: Path, found: _Found) -> Settings | None:
    try:
        return configuration.load(config)
    except ConfigError as error:
        found.lacks("servers", error)
        return None


def _targets(project: Wanted, found: _Found) -> Sequence[TargetMapping]:
    try:
        return load_mapping(
            project.file.resolve().parent / project.text("migration", "mapping", "mapping.py")
        ).targets
    except MigratorError as error:
        found.lacks("mapping", error)
        return ()


def _expecting(seen: Failure, wish: Wish, targets: Sequence[TargetMapping]) -> Failure:
    """The failure with what is expected. Raises ``ConfigError`` for a row that no target can have."""
    keys, expected = {one.name: one.key for one in targets}, list[Expected]()
    for target, key, column, value in wish.expected:
        if len(keys.get(target, ())) != len(key):
            raise ConfigError(
                "there is no such row of the new side",
                where=f"--expect {target}:{','.join(key)}",
                cause=f"the key of {target} is {', '.join(keys[target])}"
                if target in keys
                else "no such target",
                remedy=f"write TARGET:KEY:COLUMN=VALUE; the targets are {', '.join(sorted(keys))}",
            )
        expected.append(Expected(target, dict(zip(keys[target], key, strict=True)), column, value))
    wrong = [wrong for one in expected for wrong in one.unless(None)]
    return replace(
        seen,
        wrong=(*wrong, *seen.wrong),
        number=seen.number + len(wrong),
        expected=tuple(expected),
    )


def _report(project: Wanted, found: _Found) -> tuple[Mapping[str, Any] | None, Failure]:
    file = _state(project) / "reports" / "verify.json"
    try:
        document = json.loads(file.read_text())
        return document, failure.of_report(document)
    except (OSError, ValueError, KeyError, TypeError) as error:
        why = "there is no report" if isinstance(error, FileNotFoundError) else f"{type(error).__name__}"
        found.lacks("verify report", f"{why}: run `migrator verify` first")
        return None, Failure()


def _halted(seen: Failure, settings: Settings | None, project: Wanted, wish: Wish, found: _Found) -> Failure:
    """The failure with the error that is given, or that the last run left behind."""
    if wish.halted:
        return replace(seen, halted=wish.halted)
    try:
        ended = last_error(settings, _state(project))
    except MigratorError as error:
        found.lacks("end of the last run", error)
        return seen
    return seen if ended is None else replace(seen, halted=ended.words, error=ended.error)


def _present(
    settings: Settings | None,
    targets: Sequence[TargetMapping],
    report: Mapping[str, Any] | None,
    wish: Wish,
    found: _Found,
) -> Present | None:
    names = list(dict.fromkeys(name for one in targets for name in one.sources))
    if settings is None or not names:
        return None

    def concerned(tables: Mapping[str, TableSchema]) -> list[Identity]:
        return [*wish.keys, *(_reported(report, tables) if report is not None else ())]

    try:
        with tempfile.TemporaryDirectory() as folder:
            present = from_source.read(
                sides(settings)[0], settings.name, names, concerned, wish.most_rows, Path(folder)
            )
    except MigratorError as error:
        found.lacks("source", error)
        return None
    found.left += present.left
    return present


def _reported(report: Mapping[str, Any], tables: Mapping[str, TableSchema]) -> list[Identity]:
    return [
        (table, tuple(values[name] for name in tables[table].key))
        for table, values in failure.old_rows(report)
        if table in tables and all(name in values for name in tables[table].key)
    ]


def _together(kept: event_log.Kept, present: Present | None, known: Structure) -> History:
    """The history of the log, begun with the rows of which the log says nothing as they are now."""
    start = {name: list(kept.history.start.get(name, ())) for name in known.tables}
    for name, rows in (present.rows if present else {}).items():
        if name in start:
            start[name] += [row for row in rows if history.identity(known, name, row) not in kept.known]
    transactions = (
        replace(one, changes=tuple(change for change in one.changes if change.table in known.tables))
        for one in kept.history.transactions
    )
    return History(start, tuple(one for one in transactions if one.changes))


def _seeds(report: Mapping[str, Any] | None, wish: Wish, whole: History, known: Structure) -> list[Identity]:
    if wish.keys:
        return list(wish.keys)
    if wish.position is not None:
        return []
    if report is not None and (rows := _reported(report, known.tables)):
        return rows
    return [
        history.identity(known, change.table, row)
        for change in reversed(whole.changes())
        for row in (change.after, change.before)
        if row is not None
    ]


def _chosen(
    whole: History, known: Structure, seeds: Sequence[Identity], wish: Wish, found: _Found
) -> History:
    """The part of the history that is wished for."""
    if wish.position is not None:
        orders = [one.order for one in whole.transactions]
        before = [one for one in orders if one <= wish.position][-_WINDOW:]
        after = [one for one in orders if one > wish.position][:_WINDOW]
        window = [*before, *after]
        if not window:
            raise ConfigError(
                "there are no transactions around this position",
                where=f"--around {wish.position}",
                cause=f"the event log holds {len(orders)} transactions"
                + (f", {orders[0]} to {orders[-1]}" if orders else ""),
                remedy="name a position of the ledger or of `log/segments.json` of an incident without --around",
            )
        whole = history.from_place(whole, known, window[0])
        whole = replace(
            whole, transactions=tuple(one for one in whole.transactions if one.order <= window[-1])
        )
        if len(window) < len(orders):
            found.left.append(f"{len(orders) - len(window)} transactions further away from --around")
        seeds = [
            history.identity(known, change.table, row)
            for change in whole.changes()
            for row in (change.after, change.before)
            if row is not None
        ]
    _check_keys(wish, known, whole)
    if not wish.keys and wish.position is None and whole.rows() <= wish.most_rows:
        return whole
    rows, beyond = history.around(whole, known, seeds, wish.most_rows)
    if beyond:
        found.left.append(
            f"{beyond} or more rows linked with those that are there: --most-rows {wish.most_rows}"
        )
    if not rows:
        return whole if whole.rows() <= wish.most_rows else History({name: [] for name in known.tables})
    return history.only(whole, known, rows)


def _check_keys(wish: Wish, known: Structure, whole: History) -> None:
    there = {history.identity(known, table, row) for table, row in whole.every()}
    for table, key in wish.keys:
        if table not in known.tables or len(key) != len(known.tables[table].key) or (table, key) not in there:
            raise ConfigError(
                "there is no such row of the old side",
                where=f"--keys {table}:{','.join(key)}",
                cause="it is neither in the event log nor in what could be read of the source",
                remedy=f"write TABLE:VALUE[,VALUE...]; the tables are {', '.join(sorted(known.tables))}",
            )


def _state(project: Wanted) -> Path:
    return project.file.resolve().parent / project.text("migration", "state", ".migrator")
