"""What a scenario's run leaves, as its records and Arrow schemas have it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from scenarios.play import bundle, catalog_files
from scenarios.play.run_result import FAILS, HALTS, REFUSED, RESTARTS, RESUMES, STALLS, RunResult
from tests.reference import records
from tests.reference.blocks import table
from tests.reference.records import Document, as_json, described
from verify.history import history
from verify.history.history import Description, TrackedTable
from verify.history.result import CheckResult, Moment, Outcome, WitnessCase
from verify.two_sides.history import Moment as Deed
from verify.two_sides.history import Pointed, Read, State, TwoSides, Write

PAGE = "reference/formats/bundle-formats.md"
_ENDINGS = (RESUMES, RESTARTS, HALTS, REFUSED, STALLS, FAILS)


def lines() -> Iterator[str]:
    """All sections of the page."""
    yield from _result()
    yield from _history()
    yield from _two_sides()


def _two_sides() -> Iterator[str]:
    """The history of a cut-over, which has no tables."""
    write = Write(1, 1, "old", "100000001", 5, 9, "ok")
    state = State("new", 12, ("100000001",), ("counter 1 is 3",), ("click 100000001",))
    found = TwoSides(
        (write,), (state,), (state,), (Deed(3, "closed", ""),), ("nobody could write",), 2,
        reads=(Read(4, 6, "old"),), pointed=(Pointed(7, 8, "new"),),
    )  # fmt: skip
    yield from ("## two_sides.json", "", "A cut-over's bundle has it in place of the folder `history`.", "")
    yield from records.lines(Document("The history", as_json(asdict(found)), TwoSides))
    yield from records.lines(Document("A write", as_json(asdict(write)), Write))
    yield from records.lines(Document("A state", as_json(asdict(state)), State))
    yield from records.lines(Document("A moment", as_json(asdict(found.moments[0])), Deed))
    yield from records.lines(Document("A read", as_json(asdict(found.reads[0])), Read))
    yield from records.lines(Document("A word that points reads", as_json(asdict(found.pointed[0])), Pointed))


def _result() -> Iterator[str]:
    """``result.json`` as it is written of a result with a witness."""
    yield from ("## result.json", "")
    with tempfile.TemporaryDirectory() as folder:
        case = WitnessCase("key 1", ("because",), (Moment("log", 3, "put", True),))
        check = CheckResult("D1", "no time travel", Outcome.VIOLATED, 3, "versions", 1, (case,), reason="x")
        scenario = catalog_files.all()[0]
        result = RunResult(scenario, "mysql", 4, "resumes", "", (check,), Outcome.VIOLATED, Path(folder), 2.5)
        bundle.write_result(result, {"python": "3"}, "migrator scenario run")
        written = json.loads((Path(folder) / bundle.RESULT).read_text("utf-8"))
    told = {"versions": "of the tool and what it runs on", "command": "runs the same again"}
    told |= {"scenario": "name of what was run", "ending": " or ".join(map("`{}`".format, _ENDINGS))}
    outcomes = {"outcome": " or ".join(f"`{one.value}`" for one in Outcome)}
    yield from records.lines(Document("The run", written, RunResult, told | outcomes, frozenset({"bundle"})))
    (checked,) = written["checks"]
    yield from records.lines(Document("A check", checked, CheckResult, outcomes))
    (witness,) = checked["witnesses"]
    yield from records.lines(Document("A witness", witness, WitnessCase))
    lane = {"lane": records.attributes(Moment)["track"]}
    moment = witness["timeline"][0]
    yield from records.lines(Document("A moment of its timeline", moment, Moment, lane, frozenset({"track"})))


def _history() -> Iterator[str]:
    yield from (
        "## History",
        "",
        "In a bundle's folder `history`: `description.json`, and tables as Parquet.",
        "",
    )
    table_told = asdict(TrackedTable("item"))
    description = Description("hot", "mysql", 4, (TrackedTable("item"),), True)
    written = {"format": history.FORMAT} | as_json(asdict(description))
    yield from records.lines(Document("description.json", written, Description))
    yield from records.lines(Document("A tracked table", table_told, TrackedTable))
    told = described(history)
    names = {id(schema): name for name, schema in vars(history).items() if name.isupper()}
    yield from ("### Tables", "")
    yield from table(
        ("File", "Holds", "Columns"),
        (
            (
                f"`{name}.parquet`",
                told[names[id(schema)]],
                ", ".join(f"`{column.name}` {column.type}" for column in schema),
            )
            for name, schema in history.SCHEMAS.items()
        ),
    )
    yield ""
