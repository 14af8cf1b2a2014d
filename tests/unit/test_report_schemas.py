"""The JSON reports keep to the schemas that docs/schemas tells their readers."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pytest
from jsonschema import Draft202012Validator

from migrator.cli import changetables, cli, remap, reset
from migrator.cli.check.item import Item, Outcome, exit_code
from migrator.cli.check.item import document as check_document
from migrator.cli.cutover.plan import FencedSide, Planned, Way
from migrator.cli.cutover.plan import document as plan_document
from migrator.cli.cutover.reads import document as reads_document
from migrator.cli.cutover.standing import SideNow
from migrator.cli.cutover.standing import document as cutover_document
from migrator.cli.dump import document as dump_document
from migrator.cli.dump import pace_document, plain, request_document
from migrator.cli.explain import document as explain_document
from migrator.cli.explain import refused
from migrator.cli.grants import document as grants_document
from migrator.cli.init.begun import Begun, BegunTable
from migrator.cli.repair.forms import RepairReport
from migrator.cli.repair.forms import json_report as repair_json
from migrator.cli.repair.report import planned_outcome
from migrator.cli.rows.rows import retried
from migrator.cli.schema import schema as schema_command
from migrator.cli.sequences import document as sequences_document
from migrator.cli.try_ import as_document
from migrator.errors import MappingError
from migrator.model.cutover.fence import FenceKind, FencePlan, FenceState, LateWriters, Standing, Writer
from migrator.model.cutover.reads import ReadShape, ReadsLimits
from migrator.model.cutover.record import CutoverPlan, Phase, Record, Side, Took
from migrator.model.grants import Grants
from migrator.model.sequence import Advance
from migrator.model.table import TableId
from migrator.ports.remains import Found, Kind, Left
from migrator.run.commands.trial import Trial
from migrator.schema import Revision
from migrator.schema import Standing as AtRevision
from migrator.schema.acts import Act
from migrator.wiring.gates.judge import LastVerdict, LastVerdicts
from migrator.wiring.gates.reads import ReadsGate
from migrator.wiring.observed.status import Status
from migrator.wiring.remap import Remapped
from scenarios.mutants.mapping_commands import document as kill_table
from scenarios.mutants.of_mappings import MappingMutant
from scenarios.rehearsal.account import Account
from tests.reference import full
from tests.unit.cli.test_repair_report import BEFORE, STEPS, WRONG, after
from tests.unit.cli.test_status import FULL, STOPPED, status_json
from tests.unit.model.test_sequence_advance import ONE
from tests.unit.observers import full_pages
from tests.unit.transforms.test_explained import JOINED, TABLE
from tests.unit.verify.dual_read.test_dual_report import every_kind
from tests.unit.verify.test_verify_report import DIFFERENT, EQUAL
from transforms.on_spark.explained import explained
from verify.dual_read.report import json_report as dual_json
from verify.tables.report import json_report as verify_json

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"


def repaired(dry: bool) -> str:
    done = planned_outcome(BEFORE, STEPS) if dry else after(WRONG, item="different")
    return repair_json(RepairReport("shop", "2026-01-01T00:00:00+00:00", 1.5, done, "migrator repair"))


def status_told(found: Status) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return status_json(Path(folder), found)


def checked(*outcomes: Outcome) -> str:
    items = [
        Item(one, "grain", "item", "depends on two", "mapping.py:3", "by 7", "fix it", ("d",))
        for one in outcomes
    ]
    return json.dumps(check_document("shop", items, exit_code(items)))


def explanation() -> str:
    tables = [
        asdict(explained(JOINED, TABLE)) | {"plan": ["Project"]},
        refused("item", MappingError("it has no key", where="mapping.py:3", cause="c", remedy="r")),
    ]
    return json.dumps(explain_document("shop", tables, 2))


def dumps() -> str:
    return json.dumps(dump_document(full.BOOK, [full.DUMP]), default=plain)


def trial(number: int) -> str:
    rows = pa.table({"id": ["7"], "name": pa.array([None], pa.string())})
    found = [
        Trial("item id=7", {"item": rows}, rows),
        Trial("item id=8", {"item": rows}, None, [("id", "no")]),
    ]
    return json.dumps(as_document(found[number]))


def cut_over(record: Record | None) -> str:
    sides = []
    if record is not None:
        state = FenceState(Standing.PARTLY, ("a trigger",))
        sides = [SideNow(side, record.plan.fence(side), state, LATE) for side in Side]
    return json.dumps(cutover_document("shop", record, sides, None))


LATE = LateWriters(2, (("app", 2),), "refused statements")
FENCE = FencePlan(
    FenceKind.TRIGGERS, (TableId("public", "item"),), "migrator", "go there", (), frozenset({"x"})
)
RECORD = Record(
    CutoverPlan(FENCE, FENCE),
    took=(Took(Phase.FENCING, 0.2),),
    reads_wanted=Side.NEW,
    structure=(("old.item", "0f"),),
)


def rehearsed() -> str:
    account = Account(needs={"disk": ["2 GiB"]}, named=["load"])
    with account.step("dump") as step:
        step.unknown("no rows")
    return json.dumps(account.document())


BROKEN = MappingMutant("item", 7, "a filter is dropped", "")


def numbers(applied: bool) -> str:
    found = [
        Advance(ONE, 8, 7),
        Advance(ONE, ONE.following),
        Advance(ONE, 1, None, "no right", "GRANT it", "n"),
    ]
    return json.dumps(sequences_document("shop", found, applied, 2))


ACT = Act(
    "2026-01-01 00:00:00+00", "repair", 3, "migrator", "db", "root", 7, "1.0", "a reason", "one row of item"
)


RIGHTS = Grants("the source", "m@'%'", "CREATE USER m", ("GRANT a",), (("GRANT b", "if c"),))

REVISION = Revision("0001", "New tables.", ran=True)


def what_is_left(kind: Kind) -> str:
    found = Found("source x", (Left(kind, "n", "a thing of 7 rows"),), ("the rest: it isn't ours",))
    return json.dumps(reset.document("shop", [found], reset.Outcome.SHOWN))


def mapped_anew(done: Remapped | None) -> str:
    return json.dumps(remap.document("shop", "item", done, "a process"))


def begun() -> str:
    project = Begun(as_json=True, migration="shop")
    project.file(Path("migration.toml"))
    project.file(Path(".gitignore"), "added to")
    project.table(BegunTable("item", ["old_item"], ["id"], "a guess"), "")
    project.note("x can't take part")
    project.to_write("pg_dump", "")
    project.next("edit")
    return json.dumps(project.document())


SHAPES = ((ReadShape("/q.sql", "0a", "orders", "0b"), ("never compared",)),)
GATE = ReadsGate(SHAPES, ReadsLimits(), "never compared")


def gate(record: Record | None) -> str:
    return json.dumps(reads_document("shop", GATE, record))


def planned(refused: bool) -> str:
    items = tuple(Item(one, "grain", "item", "depends on two") for one in Outcome)
    ways = [Way("there", "postgresql://a", "mysql://b", items, refusals=2 if refused else 0)]
    side = FencedSide(Side.OLD, FENCE, (Writer("app", ("INSERT on item",)),), ("superuser x",), ("DROP x;",))
    verdicts = LastVerdicts((LastVerdict("item", "equal", 7), LastVerdict("note", "", 0)))
    found = Planned(RECORD.plan, (side,), verdicts, GATE)
    return json.dumps(plan_document("shop", ways, None if refused else found, False))


REPORTS: dict[str, tuple[str, Callable[[], str]]] = {
    "verify, different": ("verify", lambda: verify_json(DIFFERENT, "migrator repair --from x")),
    "verify, equal": ("verify", lambda: verify_json(EQUAL)),
    "dual read": ("dual-read", lambda: dual_json(every_kind())),
    "repair": ("repair", lambda: repaired(dry=False)),
    "dry run": ("repair", lambda: repaired(dry=True)),
    "status": ("status", lambda: status_told(FULL)),
    "status, stopped": ("status", lambda: status_told(STOPPED)),
    "check": ("check", lambda: checked(*Outcome)),
    "check, nothing": ("check", checked),
    "explain": ("explain", explanation),
    "sequences": ("sequences", lambda: numbers(applied=False)),
    "sequences, applied": ("sequences", lambda: numbers(applied=True)),
    "dumps": ("dumps", dumps),
    "try": ("try", lambda: trial(0)),
    "try, fails": ("try", lambda: trial(1)),
    "cut-over": ("cutover", lambda: cut_over(RECORD)),
    "cut-over, not planned": ("cutover", lambda: cut_over(None)),
    "plan of a cut-over": ("cutover-plan", lambda: planned(refused=False)),
    "plan of a cut-over, refused": ("cutover-plan", lambda: planned(refused=True)),
    "rehearsal": ("rehearsal", rehearsed),
    "kill table": (
        "kill-table",
        lambda: json.dumps(kill_table([(BROKEN, [True, False])], ["pytest", "check"], [BROKEN])),
    ),
    "grants": ("grants", lambda: json.dumps(grants_document("shop", {"source": RIGHTS, "target": RIGHTS}))),
    "history": ("history", lambda: json.dumps([asdict(ACT), asdict(ACT) | {"epoch": None}])),
    "set aside": ("set-aside", lambda: json.dumps([asdict(one) for one in full.LEDGER.bad_rows])),
    "change tables": ("changetables", lambda: json.dumps(changetables.document("shop", "CREATE TABLE x;"))),
    "revisions": (
        "revisions",
        lambda: json.dumps(schema_command.standing("shop", AtRevision(("0001",), ("0001",), (REVISION,)))),
    ),
    "upgrade": ("upgrade", lambda: json.dumps(schema_command.upgraded("shop", [REVISION], None))),
    "upgrade, as SQL": ("upgrade", lambda: json.dumps(schema_command.upgraded("shop", [], "CREATE"))),
    **{f"reset, {kind.value}": ("reset", partial(what_is_left, kind)) for kind in Kind},
    "remap": ("remap", lambda: mapped_anew(Remapped(True, 7, ""))),
    "remap, beside": ("remap", lambda: mapped_anew(Remapped(True, 7, "", "item_next"))),
    "remap, not filled": ("remap", lambda: mapped_anew(Remapped(False, 7, ""))),
    "remap, aborted": ("remap", lambda: mapped_anew(None)),
    "init": ("init", begun),
    "dump request": (
        "dump-request",
        lambda: json.dumps(request_document(full.BOOK.requests[0]), default=plain),
    ),
    "pace": ("dump-pace", lambda: json.dumps(pace_document(full.BOOK))),
    "retried": ("retried", lambda: json.dumps(retried("shop", full.LEDGER.bad_rows, full.LEDGER.bad_rows))),
    "gate of reads": ("reads", lambda: gate(RECORD)),
    "gate of reads, not planned": ("reads", lambda: gate(None)),
    "live page": ("live", full_pages.live),
    "live page, nothing known": ("live", full_pages.nothing_known),
    "live page, its hour": ("hour", full_pages.hour),
}


def validator(name: str) -> Draft202012Validator:
    schema = json.loads((SCHEMAS / f"{name}.schema.json").read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def objects(document: Any) -> list[dict[str, Any]]:
    """The document and all objects in it."""
    if isinstance(document, list):
        return [each for item in document for each in objects(item)]
    if isinstance(document, dict):
        return [document, *(each for value in document.values() for each in objects(value))]
    return []


@pytest.mark.parametrize(("schema", "report"), REPORTS.values(), ids=list(REPORTS))
def test_a_report_keeps_to_its_schema(schema: str, report: Callable[[], str]) -> None:
    assert list(validator(schema).iter_errors(json.loads(report()))) == []


@pytest.mark.parametrize(("schema", "report"), REPORTS.values(), ids=list(REPORTS))
def test_a_field_more_or_less_anywhere_is_against_it(schema: str, report: Callable[[], str]) -> None:
    check, document = validator(schema), json.loads(report())
    named = document if isinstance(document, dict) else {}
    by_table = [id(each) for name in ("before", "after", "others") for each in objects(named.get(name))]
    for each in objects(document):
        if id(each) not in by_table:
            each["more"] = 1
            assert list(check.iter_errors(document)), each
            del each["more"]
    assert list(check.iter_errors(document)) == []
    tops = document if isinstance(document, list) else [document]
    for top in tops:
        for name in list(top):
            value = top.pop(name)
            assert list(check.iter_errors(document)), name
            top[name] = value


def test_every_field_says_what_it_is() -> None:
    for file in SCHEMAS.glob("*.json"):
        schema = json.loads(file.read_text("utf-8"))
        for kind in (schema, *schema.get("$defs", {}).values()):
            for name, field in kind.get("properties", {}).items():
                assert field.get("description"), f"{file.name}: {name}"


def speaking(command: click.Command, words: tuple[str, ...] = ()) -> Iterator[str]:
    """The commands below one that have --json, by the words that call them."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from speaking(below, (*words, name))
    elif any("--json" in one.opts for one in command.params if isinstance(one, click.Option) and one.is_flag):
        yield " ".join(words)


def test_the_table_names_every_command_that_speaks_json_and_its_schema() -> None:
    page = (SCHEMAS.parent / "reference" / "commands.md").read_text("utf-8")
    rows = re.findall(
        r"^\| `([a-z -]+) --json` \| \[([a-z-]+)\]\(\.\./schemas/\2\.schema\.json\)", page, re.M
    )
    assert [command for command, _ in rows] == sorted(speaking(cli))
    assert {schema for _, schema in rows} <= {schema for schema, _ in REPORTS.values()}
