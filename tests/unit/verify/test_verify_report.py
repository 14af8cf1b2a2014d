"""The report of a verification in its four forms, with differences of every kind."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from verify.readers.snapshot import LogPlace
from verify.report.page import value
from verify.tables.compare.compare import Counts
from verify.tables.findings.likely import likely_causes
from verify.tables.report import (
    json_report,
    junit_report,
    repair_command,
    text_report,
    write_reports,
)
from verify.tables.report_html import html_report
from verify.tables.result import (
    CANNOT_DETECT,
    Cell,
    ColumnDifference,
    OldRow,
    Sample,
    TableResult,
    VerifyResult,
)
from verify.tables.rounds.live import Round
from verify.verdict import Verdict

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \x00'\""


def _cells(
    mapped: str | None, target: str | None, cause: str = "", differs: bool = False
) -> tuple[Cell, ...]:
    return (Cell("person_id", "7", "7", False, ""), Cell("note", mapped, target, differs, cause))


def _sample(status: str, cells: tuple[Cell, ...], mapped: int = 1, target: int = 1, key: str = "7") -> Sample:
    old = (OldRow("customer", (("id", key), ("note", cells[1].mapped), ("phone", None))),) if mapped else ()
    return Sample(status, (("person_id", key),), cells, old, mapped, target)


def _table(
    name: str, counts: Counts, verdict: Verdict, samples: tuple[Sample, ...] = (), reason: str = ""
) -> TableResult:
    columns = (
        ColumnDifference(
            "note",
            counts.different,
            2,
            (("upper and lower case", 1), ("NULL in the target", 1)),
            (("Ann", "ANN"),),
        ),
    )
    return TableResult(
        target=name,
        sources=("customer", "address"),
        key=("person_id",),
        verdict=verdict,
        reason=reason,
        counts=counts,
        mapped_rows=counts.compared,
        target_rows=counts.compared,
        uncompared_columns=("filled_by_nobody",) if samples else (),
        columns=columns if counts.different else (),
        explained_rows_cap=10_000,
        samples=samples,
    )


SAMPLES = (
    _sample("different", _cells("Ann ", "ANN", "upper and lower case", True)),
    _sample("different", _cells("", None, "empty text against NULL in the target", True), key="8"),
    _sample("different", _cells(EVIL, "gone", "another value", True), key=EVIL),
    _sample("missing", _cells("Eve", None), target=0, key="9"),
    _sample("extra", _cells(None, "Mallory"), mapped=0, key="10"),
    _sample("duplicate", _cells("twice", "twice"), mapped=2, target=1, key="11"),
    _sample("set aside", _cells("on its way", "before", "another value", True), key="12"),
)
TABLES = (
    _table("person", Counts(120_000, 119_988, 5, 3, 2, 2, 1), Verdict.DIFFERENT, SAMPLES),
    _table("order_line", Counts(3_400_211, 3_400_211), Verdict.EQUAL),
    _table("invoice", Counts(), Verdict.UNKNOWN, reason="the dump of source table bill is not complete"),
)
DIFFERENT = VerifyResult(
    migration="shop",
    verdict=Verdict.DIFFERENT,
    started_at="2026-01-01T00:00:00+00:00",
    elapsed_s=12.5,
    source="mariadb://judge@old.example:3306/shop",
    target="postgresql://judge@new.example:5432/shop",
    tables=TABLES,
    rounds=(
        Round(1, LogPlace(1, "0-1-100"), LogPlace(2, "0-1-102"), 3, "0-1-103", True, False, "passed", 0.5),
    ),
    remedy="see the samples; correct the cause",
    cannot_detect=CANNOT_DETECT,
)
EQUAL = replace(DIFFERENT, verdict=Verdict.EQUAL, tables=TABLES[1:2], remedy="")


class Seen(HTMLParser):
    """Tags with their attributes, and the text outside scripts and styles."""

    def __init__(self, page: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text, self._open = "", [""]
        self.unclosed: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "wbr", "input"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._open[-1] != tag:
            self.unclosed.append(f"{self._open[-1]} before /{tag}")
        else:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if self._open[-1] not in ("script", "style"):
            self.text += data


@pytest.mark.parametrize("result", [DIFFERENT, EQUAL], ids=["different", "equal"])
def test_a_page_is_whole_and_asks_nobody(result: VerifyResult) -> None:
    seen = Seen(html_report(result, "migrator repair --from x.json"))
    assert seen.unclosed == []
    names = [tag for tag, _ in seen.tags]
    assert names.count("script") == 1
    assert not {"img", "link", "iframe", "object"} & set(names)
    assert not [
        attributes for _, attributes in seen.tags if {"src", "href", "onclick", "onerror"} & set(attributes)
    ]
    assert "url(" not in html_report(result)
    (policy,) = [a["content"] for _, a in seen.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy
    assert policy.startswith("default-src 'none'")


def test_what_differs_comes_first_however_many_are_equal() -> None:
    many = (*(replace(TABLES[1], target=f"equal_{number}") for number in range(20)), TABLES[2], TABLES[0])
    text = Seen(html_report(replace(DIFFERENT, tables=many))).text
    places = [
        text.index(name)
        for name in ("personDIFFERENT".lower(), "invoiceunknown", "equal_0equal", "equal_19equal")
    ]
    assert places == sorted(places)


def test_values_are_shown_as_they_are_and_never_run() -> None:
    seen = Seen(html_report(DIFFERENT))
    assert EVIL.replace("\x00", "U+0000") in seen.text
    assert "NULL" in seen.text
    assert "empty" in seen.text
    assert "Ann␣" in seen.text


@pytest.mark.parametrize(
    ("mapped", "target"),
    [
        ("a ", "a\u00a0"),
        ("a ", "a\n"),
        ("ab", "a\u200bb"),
        ("a b", "a\u00a0b"),
        ("ab", "a\u00adb"),
        ("abc", "a\u202ecb"),
        ("a\n", "a\r\n"),
        (" ", ""),
        ("", None),
        ("a\x1b[2J", "a[2J"),
    ],
)
def test_values_that_differ_look_different(mapped: str | None, target: str | None) -> None:
    shown = [Seen(value(each)).text for each in (mapped, target)]
    assert shown[0] != shown[1]
    assert all(each.isprintable() for each in shown)


def test_a_value_written_from_right_to_left_stays_in_its_place() -> None:
    assert value("العربية").startswith("<bdi")


def test_every_difference_can_be_found_by_status_and_table() -> None:
    seen = Seen(html_report(DIFFERENT))
    items = [a for tag, a in seen.tags if tag == "details" and "data-status" in a]
    assert [item["data-status"] for item in items] == [sample.status for sample in SAMPLES]
    assert {item["data-group"] for item in items} == {"person"}
    assert len([a for tag, a in seen.tags if tag == "tr" and a.get("class") == "differs"]) == 4 + 2 + 2
    for label in ("old row of", "no row", "2 rows in mapping(source), 1 in the target"):
        assert label in seen.text


def test_everything_that_scrolls_or_opens_is_reached_by_keyboard() -> None:
    for tag, attributes in Seen(html_report(DIFFERENT, "migrator repair")).tags:
        if tag == "pre" or attributes.get("class") == "wide":
            assert attributes.get("tabindex") == "0"
        if tag in ("img", "i"):
            assert tag == "i"  # bars are pictures of text that stands beside them
        if attributes.get("role") == "img":
            assert attributes.get("aria-label")


def test_differences_are_grouped_by_cause() -> None:
    groups = {
        group.cause.split(":")[0]: (group.rows, group.places, group.sampled)
        for group in likely_causes(DIFFERENT)
    }
    assert groups["upper and lower case"] == (1, ("person.note",), True)
    assert groups["no target row"] == (3, ("person",), False)
    assert groups["no source row"] == (2, ("person",), False)
    assert groups["several rows of one key"] == (2, ("person",), False)
    assert likely_causes(EQUAL) == ()
    text = text_report(DIFFERENT)
    assert re.search(r"^ +1\+  upper and lower case: person\.note$", text, re.MULTILINE)
    assert json.loads(json_report(DIFFERENT))["likely_causes"][0]["rows"] == 3


def test_junit_has_a_case_for_each_table() -> None:
    suite = ElementTree.fromstring(junit_report(DIFFERENT))
    assert {k: suite.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
        "skipped": "0",
    }
    kinds = {case.get("name"): [child.tag for child in case] for case in suite}
    assert kinds == {"person": ["failure"], "order_line": [], "invoice": ["error"]}
    assert "alert(1)" in (suite[0][0].text or "")


def test_the_repair_command_is_exact_and_only_where_something_differs(tmp_path: Path) -> None:
    folder = tmp_path / "re ports"
    folder.mkdir()
    write_reports(DIFFERENT, folder)
    command = f"migrator repair --from '{folder}/verify.json'"
    assert repair_command(DIFFERENT, folder) == command
    assert f"repair: {command}" in (folder / "verify.txt").read_text()
    assert json.loads((folder / "verify.json").read_text())["repair"] == command
    assert command in Seen((folder / "verify.html").read_text()).text
    write_reports(DIFFERENT, folder, "migrator repair --config 'a b.toml'")
    elsewhere = f"migrator repair --config 'a b.toml' --from '{folder}/verify.json'"
    assert elsewhere in Seen((folder / "verify.html").read_text()).text
    assert f"repair: {elsewhere}" in (folder / "verify.txt").read_text()
    write_reports(EQUAL, folder)
    assert repair_command(EQUAL, folder) == ""
    assert all("repair --from" not in file.read_text() for file in folder.iterdir())
    assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
