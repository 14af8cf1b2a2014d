"""The JSON reports keep to the schemas that docs/schemas tells their readers."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from migrator.cli.repair.forms import RepairReport
from migrator.cli.repair.forms import json_report as repair_json
from migrator.cli.repair.report import planned_outcome
from migrator.wiring.observed.status import Status
from tests.unit.cli.test_repair_report import BEFORE, STEPS, WRONG, after
from tests.unit.cli.test_status import FULL, STOPPED, status_json
from tests.unit.verify.dual_read.test_dual_report import every_kind
from tests.unit.verify.test_verify_report import DIFFERENT, EQUAL
from verify.dual_read.report import json_report as dual_json
from verify.tables.report import json_report as verify_json

SCHEMAS = Path(__file__).parents[2] / "docs" / "schemas"


def repaired(dry: bool) -> str:
    done = planned_outcome(BEFORE, STEPS) if dry else after(WRONG, item="different")
    return repair_json(RepairReport("shop", "2026-01-01T00:00:00+00:00", 1.5, done, "migrator repair"))


def status_told(found: Status) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return status_json(Path(folder), found)


REPORTS: dict[str, tuple[str, Callable[[], str]]] = {
    "verify, different": ("verify", lambda: verify_json(DIFFERENT, "migrator repair --from x")),
    "verify, equal": ("verify", lambda: verify_json(EQUAL)),
    "dual read": ("dual-read", lambda: dual_json(every_kind())),
    "repair": ("repair", lambda: repaired(dry=False)),
    "dry run": ("repair", lambda: repaired(dry=True)),
    "status": ("status", lambda: status_told(FULL)),
    "status, stopped": ("status", lambda: status_told(STOPPED)),
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
    by_table = [id(each) for name in ("before", "after", "others") for each in objects(document.get(name))]
    for each in objects(document):
        if id(each) not in by_table:
            each["more"] = 1
            assert list(check.iter_errors(document)), each
            del each["more"]
    assert list(check.iter_errors(document)) == []
    for name in document:
        assert list(check.iter_errors({k: v for k, v in document.items() if k != name})), name


def test_every_field_says_what_it_is() -> None:
    for file in SCHEMAS.glob("*.json"):
        schema = json.loads(file.read_text("utf-8"))
        for kind in (schema, *schema["$defs"].values()):
            for name, field in kind["properties"].items():
                assert field.get("description"), f"{file.name}: {name}"
