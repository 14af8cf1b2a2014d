"""JUnit XML of verdicts: one suite, one test case for each verdict.

JUnit knows passed, failed, error and skipped. Most readers show *skipped* like a pass, so *unknown* is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from verify.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Case:
    """One test case: ``summary`` in one line, ``text`` in full, both empty where it passes."""

    name: str
    verdict: Verdict
    summary: str = ""
    text: str = ""


def junit(suite: str, started_at: str, elapsed_s: float, cases: Sequence[Case]) -> str:
    """The document. Characters that XML can't hold are replaced."""
    verdicts = [case.verdict for case in cases]
    root = Element(
        "testsuite",
        name=_xml(suite),
        timestamp=started_at,
        time=f"{elapsed_s:.3f}",
        tests=str(len(cases)),
        failures=str(verdicts.count(Verdict.DIFFERENT)),
        errors=str(verdicts.count(Verdict.UNKNOWN)),
        skipped="0",
    )
    for case in cases:
        element = SubElement(root, "testcase", name=_xml(case.name), classname=_xml(suite))
        if case.verdict is not Verdict.EQUAL:
            kind = "failure" if case.verdict is Verdict.DIFFERENT else "error"
            SubElement(element, kind, message=_xml(case.summary), type=case.verdict.value).text = _xml(
                case.text
            )
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _xml(text: str) -> str:
    """XML 1.0 has no control characters, no surrogates and no two last characters of a plane (section 2.2)."""
    return "".join(
        c
        if c in "\t\n\r" or " " <= c <= "\ud7ff" or "\ue000" <= c <= "\ufffd" or c >= "\U00010000"
        else "\ufffd"
        for c in text
    )
