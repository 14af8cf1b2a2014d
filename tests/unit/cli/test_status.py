"""What `migrator status` says: lines, a document, a verdict, from states of a migration."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from migrator.cli import cli
from migrator.cli.status.document import document
from migrator.cli.status.screen import fitted
from migrator.cli.status.status import of_the_mapping, verdict
from migrator.cli.status.words import lag_in_words, lines, room_in_words
from migrator.config.project import Settings, load
from migrator.core.standing import Standing
from migrator.errors import ConnectionFailed
from migrator.model.hint import Hint
from migrator.model.ledger import Ledger
from migrator.model.observed.observation import Applied, Ended, Lag
from migrator.model.position import Position
from migrator.model.retention import Retention
from migrator.model.table import TableId
from migrator.wiring.observed import status as observed
from migrator.wiring.observed.status import SourceNow, Status, lag_of
from tests.reference import full
from tests.unit.config.test_config import GOOD, write
from verify.tables.coverage import Coverage, TableCoverage

AT = Position(7, "0/7")
LEFT = Hint(3, 1, ended=Ended(1_000_000, "MappingError", "a column is gone"))
FULL = Status(
    leader="process 1 on here",
    ledger=Ledger("shop", 3, 42, replace(full.LEDGER, dumps=(full.DUMP,))),
    segments_waiting=2,
    event_log_bytes=9_999,
    dumps=(full.DUMP,),
    book=full.BOOK,
    requests=(replace(full.DUMP, request=full.BOOK.requests[0].name()),),
    outputs=(("json:/x", 3),),
    last_changes=((full.ITEM, 1_000_000),),
    filled=(("item", 5),),
    standbys=("process 2 on there",),
    hint=replace(full.HINT, ended=None),
    warnings=("capture waits",),
    phase="streaming",
    source=SourceNow(Position(9, "0/9"), "", Retention(AT, 1, 2, 3, 4.0, "it is about to go", "raise it")),
    lag=Lag(2, 1.5, 1.5, ""),
)
STOPPED = replace(FULL, leader="", standbys=(), hint=LEFT, phase="stopped")
COVERED = Coverage((TableCoverage("item", "equal", 1, 7, 0, 3, 3),), "", 5)
WRONG = Coverage((TableCoverage("item", "different", 1, 7, 0, 3, 3, differing=2, report="r"),), "", 5)


def settings(folder: Path) -> Settings:
    return load(write(folder, GOOD), {"SOURCE_PASSWORD": "x"})


def status_json(folder: Path, found: Status = FULL, covered: Coverage | None = COVERED) -> str:
    """The document of a state."""
    return json.dumps(document(settings(folder), found, covered, verdict(found, covered, 60)))


@pytest.mark.parametrize(
    ("found", "covered", "wanted"),
    [
        (FULL, COVERED, Standing.BEHIND),  # a joined target is being filled
        (FULL, WRONG, Standing.DIFFERENT),
        (STOPPED, COVERED, Standing.STOPPED),
        (STOPPED, None, Standing.STOPPED),
    ],
)
def test_the_verdict(found: Status, covered: Coverage | None, wanted: Standing) -> None:
    assert verdict(found, covered, 60) is wanted


def complete(found: Status) -> Status:
    assert found.ledger is not None
    assert found.ledger.checkpoint is not None
    return replace(
        found, ledger=replace(found.ledger, checkpoint=replace(found.ledger.checkpoint, filling=()))
    )


def test_the_bound_of_the_lag_is_the_commands() -> None:
    found = complete(FULL)
    assert verdict(found, COVERED, 60) is Standing.CAUGHT_UP
    assert verdict(found, COVERED, 1.0) is Standing.BEHIND
    assert verdict(replace(found, lag=Lag()), COVERED, 60) is Standing.UNKNOWN


def shown(folder: Path, found: Status, covered: Coverage | None = COVERED) -> list[str]:
    stands = verdict(found, covered, 60)
    return list(lines(settings(folder), found, covered, stands, now_s=61.0))


def test_the_lines_begin_with_the_verdict_and_say_all(tmp_path: Path) -> None:
    text = shown(tmp_path, FULL)
    assert text[1] == "standing   behind: not everything is dumped yet"
    for line in (
        "phase      streaming",
        "leader     process 1 on here",
        "standby    process 2 on there",
        "note       a note (told 61 s ago)",
        "warning    capture waits",
        "log ends   0/9",
        "applied    segment 42, epoch 3, at 0/7",
        "lag        2 transactions behind, at most 2 s old",
        "event log  2 segment(s) to apply, 0.0 MiB",
        "output     json:/x: up to segment 3",
    ):
        assert line in text


def test_a_stopped_run_says_how_it_ended_and_what_nobody_applies(tmp_path: Path) -> None:
    text = shown(tmp_path, STOPPED)
    assert text[1] == "standing   stopped: nobody applies what is behind"
    assert "ended      60 s ago: a column is gone" in text
    assert not any(line.startswith("note") for line in text)
    assert shown(tmp_path, replace(STOPPED, lag=Lag(0, 0.0, 1.0, "")))[1] == "standing   stopped"
    assert shown(tmp_path, replace(STOPPED, lag=Lag()))[1] == "standing   stopped: nobody leads"
    assert "rows of item differ" in shown(tmp_path, STOPPED, WRONG)[1]


@pytest.mark.parametrize(
    ("left", "phase"),
    [
        (replace(full.HINT, ended=None), "streaming"),
        (replace(full.HINT, ended=None, epoch=4), "streaming"),
        (replace(full.HINT, ended=None, epoch=2), "starting"),
        (full.HINT, "starting"),
        (None, "starting"),
    ],
)
def test_a_leader_that_starts_is_not_what_the_one_before_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: Hint | None, phase: str
) -> None:
    """The one before was killed (its epoch is an older one), or has ended; the present one has told nothing yet."""
    asked = SimpleNamespace(meter=None, retention=None)
    answers = {
        "source_parts": lambda _: (None, lambda _: asked),
        "peek": lambda _: FULL.ledger,
        "look": lambda _: SimpleNamespace(leader="process 5", standbys=(), hint=left, book=FULL.book),
        "filled": lambda _: (),
    }
    for name, answer in answers.items():
        monkeypatch.setattr(observed, name, answer)
    found = observed.status(settings(tmp_path))
    theirs = phase == "starting"
    assert (found.phase, found.warnings) == (phase, () if theirs else full.HINT.warnings)
    said = [line for line in shown(tmp_path, found) if line.startswith("note")]
    assert bool(said) is not theirs
    assert json.loads(status_json(tmp_path, found))["note"] == ("" if theirs else "a note")


def test_what_is_not_known_is_said(tmp_path: Path) -> None:
    silent = replace(
        complete(FULL), source=SourceNow(None, "it is gone"), lag=Lag(None, None, 9.0, "it is gone")
    )
    text = shown(tmp_path, silent)
    assert text[1] == "standing   unknown: it is gone"
    assert "log ends   unknown: it is gone" in text
    assert "lag        unknown (it is gone); all of before 9 s ago is applied" in text
    assert lag_in_words(Lag(5, None, None, "no run saw it"), "bytes") == (
        "5 bytes of log behind, of unknown age (no run saw it)"
    )
    assert room_in_words(Retention(AT)) == ""
    assert room_in_words(Retention(AT, kept_bytes=1 << 20)) == (
        "1.0 MiB are kept for this migration; without a bound"
    )
    assert room_in_words(Retention(AT, kept_bytes=1 << 20, expiry_s=7200)) == (
        "1.0 MiB are kept for this migration; kept for 2.0 h, needed or not"
    )


def test_the_lag_is_by_source_and_ledger_and_the_last_runs_word() -> None:
    silent = lag_of(SourceNow(None, "it is gone"), AT, Applied(0, 7))
    assert (silent.behind, silent.unknown) == (None, "it is gone")
    assert silent.at_most_s is not None
    assert lag_of(SourceNow(None, "it is gone"), AT, Applied(0, 8)).at_most_s is None, "it was put back"
    assert lag_of(SourceNow(AT, ""), AT, None).behind == 0


def test_watched_it_goes_on_over_errors_until_it_is_ended(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said: list[Status | ConnectionFailed] = [FULL, ConnectionFailed("the target can't be reached"), STOPPED]
    answers = iter(said)

    def looked(_: Settings) -> Status:
        answer = next(answers, None)
        if isinstance(answer, ConnectionFailed):
            raise answer
        if answer is None:
            raise KeyboardInterrupt
        return answer

    monkeypatch.setattr("migrator.wiring.observed.status.status", looked)
    monkeypatch.setenv("SOURCE_PASSWORD", "x")
    file = write(tmp_path, GOOD)
    done = CliRunner().invoke(cli, ["status", "--config", str(file), "--json", "--watch", "--every", "0.2"])
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["standing"] for one in documents] == ["behind", "stopped"]
    assert "the target can't be reached" in done.stderr


def crowded(number: int, folder: Path) -> list[str]:
    """The lines of so many tables, the last of which differs and isn't dumped."""
    dumps = tuple(
        replace(full.DUMP, table=TableId("s", f"t{place:03}"), done=True) for place in range(number - 1)
    )
    left = replace(full.DUMP, table=TableId("s", "left"), done=False)
    tables = [replace(COVERED.tables[0], table=f"n{place:03}") for place in range(number - 1)]
    wrong = replace(WRONG.tables[0], table="wrong")
    return shown(folder, replace(FULL, dumps=(*dumps, left)), Coverage((*tables, wrong)))


@pytest.mark.parametrize(("columns", "rows"), [(80, 24), (40, 24), (200, 60)])
def test_of_many_tables_the_screen_has_the_verdict_and_what_is_wrong(
    tmp_path: Path, columns: int, rows: int
) -> None:
    text = crowded(500, tmp_path)
    assert len(text) > 1000
    seen = fitted(text, columns, rows)
    assert sum(-(-len(line) // columns) for line in seen) < rows
    assert seen[1] == "standing   different: rows of wrong differ, by the last verification"
    assert "warning    capture waits" in seen
    assert seen[-1] == f"... and {len(text) - len(seen) + 1:,} lines more"
    if columns >= 80:
        assert [line.split()[1] for line in seen if line.startswith("dump ")] == ["left:"]


def test_all_lines_are_there_where_they_fit(tmp_path: Path) -> None:
    text = crowded(3, tmp_path)
    assert fitted(text, 200, len(text) + 1) == text
    assert len(fitted(text, 200, len(text))) == len(text) - 1


def test_of_many_different_tables_three_are_named(tmp_path: Path) -> None:
    wrong = Coverage(tuple(replace(WRONG.tables[0], table=f"t{place}") for place in range(40)))
    assert shown(tmp_path, FULL, wrong)[1] == (
        "standing   different: rows of t0, t1, t2 and 37 more differ, by the last verification"
    )


def test_a_target_that_the_mapping_no_longer_has_differs_for_nobody() -> None:
    both = Coverage((replace(WRONG.tables[0], table="gone"), COVERED.tables[0]))
    kept = of_the_mapping(both, FULL)
    assert kept is not None
    assert [one.table for one in kept.tables] == ["item"]
    assert verdict(FULL, both, 60) is Standing.DIFFERENT
    assert verdict(FULL, kept, 60) is not Standing.DIFFERENT
    assert of_the_mapping(WRONG, FULL) == WRONG, "one that the mapping has still does"
    assert of_the_mapping(both, replace(FULL, ledger=None)) == both, "the mapping isn't known"
