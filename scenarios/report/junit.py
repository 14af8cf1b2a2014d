"""The report as JUnit XML: one suite a run, one test case a checker.

JUnit knows passed, failed, error and skipped. Most readers show *skipped* in the colour of a pass. So *unknown* is
an error here, which nobody takes for a pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from scenarios.report.facts import Fact
from scenarios.report.tables import Table, Tables
from scenarios.report.verdict import control, is_control
from verify.history import timeline
from verify.history.result import CheckResult, Outcome

# Control characters that XML 1.0 cannot hold; error texts of servers may.
_NOT_XML = {number: "�" for number in range(32) if number not in (9, 10, 13)}


def junit(facts: Sequence[Fact], tables: Tables) -> str:
    """The XML document, with an XML declaration."""
    root = ElementTree.Element("testsuites", name="scenarios")
    for fact in facts:
        _suite(root, fact)
    for table in tables.all():
        _rows(root, table)
    for suite in root:
        _count(suite)
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in root)))
    ElementTree.indent(root)
    document: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return document.decode() + "\n"


def _suite(root: ElementTree.Element, fact: Fact) -> None:
    run = fact.run
    suite = ElementTree.SubElement(root, "testsuite", name=_text(fact.name), time=f"{run.elapsed_s:.3f}")
    properties = ElementTree.SubElement(suite, "properties")
    for name, value in (("seed", str(run.seed)), ("bundle", str(run.bundle)), ("ending", run.ending)):
        ElementTree.SubElement(properties, "property", name=name, value=_text(value))
    if is_control(run):
        case = _case(suite, fact, f"broken variant {run.mutant} is caught")
        found = control(run)
        if found is Outcome.VIOLATED:
            _add(case, "failure", "no checker caught it: the checks beside it prove nothing", "")
        elif found is Outcome.UNKNOWN:
            _add(case, "error", f"it could not be judged: {run.reason}", run.error)
        return
    verdict = _case(suite, fact, "verdict")
    verdict.set("time", f"{run.elapsed_s:.3f}")
    if run.outcome is not Outcome.HOLDS:
        _add(verdict, _kind(run.outcome), run.reason, run.error)
    for check in run.checks:
        case = _case(suite, fact, f"{check.code} {check.title}")
        if check.outcome is not Outcome.HOLDS:
            said = check.reason or f"{check.violations} violations in {check.checked} {check.unit}"
            _add(case, _kind(check.outcome), said, _witnesses(check))


def _rows(root: ElementTree.Element, table: Table) -> None:
    suite = ElementTree.SubElement(root, "testsuite", name=_text(table.title))
    for row in table.rows:
        if row.outcome is None:
            continue  # says nothing about this product
        case = ElementTree.SubElement(
            suite, "testcase", classname=_text(table.title), name=_text(row.cells[0])
        )
        if row.outcome is not Outcome.HOLDS:
            _add(case, _kind(row.outcome), row.cells[0], "; ".join(row.cells))


def _case(suite: ElementTree.Element, fact: Fact, name: str) -> ElementTree.Element:
    classname = f"scenario.{fact.run.scenario.name}.{fact.run.engine}"
    return ElementTree.SubElement(suite, "testcase", classname=_text(classname), name=_text(name))


def _kind(outcome: Outcome) -> str:
    return "failure" if outcome is Outcome.VIOLATED else "error"


def _add(case: ElementTree.Element, kind: str, message: str, text: str) -> None:
    ElementTree.SubElement(case, kind, message=_text(message)).text = _text(text)


def _witnesses(check: CheckResult) -> str:
    return "\n\n".join(timeline.text(case) for case in check.witnesses)


def _count(suite: ElementTree.Element) -> None:
    for name, tag in (("tests", "testcase"), ("failures", "testcase/failure"), ("errors", "testcase/error")):
        suite.set(name, str(len(suite.findall(tag))))


def _text(text: str) -> str:
    return text.translate(_NOT_XML)
