"""Drawings of witnesses, and the benchmark's history."""

from __future__ import annotations

from xml.etree import ElementTree

import pyarrow as pa

from verify.history import timeline
from verify.history.bench import bench, make_history
from verify.history.checks.time_travel import CHECK
from verify.history.history import History, table_of
from verify.history.judge import judge
from verify.history.result import Moment, Outcome, WitnessCase

CASE = WitnessCase(
    "register 17: version 1 at commit 3 after version 2 at commit 2",
    ("the log delivered version 2", "a chunk <delivered> version 1 later"),
    (
        Moment("client", 2, "put by session 1 number 2: ok"),
        Moment("log", 2, "put by session 1 number 2", True),
        Moment("chunk", 5, "delivered version 1 in segment 4", True),
        Moment("target", 3, "session 1 number 1; the ledger says position 2", True),
        Moment("fault", 1, "kill_pipeline at capture.chunk:2"),
    ),
)
DRAWN = """\
register 17: version 1 at commit 3 after version 2 at commit 2
  - the log delivered version 2
  - a chunk <delivered> version 1 later

  client  log     chunk   target  fault
  o       |       |       |       |       number 2: put by session 1 number 2: ok
  |       X       |       |       |       position 2: put by session 1 number 2
  |       |       X       |       |       delivery 5: delivered version 1 in segment 4
  |       |       |       X       |       commit 3: session 1 number 1; the ledger says position 2
  |       |       |       |       o       fault 1: kill_pipeline at capture.chunk:2
"""


def test_a_witness_as_text() -> None:
    assert timeline.text(CASE) == DRAWN


def test_a_witness_without_a_timeline_is_its_words() -> None:
    assert timeline.text(WitnessCase("headline", ("why",), ())) == "headline\n  - why\n"


def test_a_witness_as_svg() -> None:
    root = ElementTree.fromstring(timeline.svg(CASE))
    space = "{http://www.w3.org/2000/svg}"
    texts = [each.text for each in root.iter(f"{space}text")]
    assert texts[:5] == ["client", "log", "chunk", "target", "fault"]
    assert len(texts) == 5 + len(CASE.timeline)
    circles = list(root.iter(f"{space}circle"))
    assert [circle.get("class") == "guilty" for circle in circles] == [each.guilty for each in CASE.timeline]
    heights = [float(circle.get("cy", "")) for circle in circles]
    assert heights == sorted(heights)
    assert max(heights) < float(root.get("height", ""))
    assert root.findtext(f"{space}title") == CASE.headline


def test_the_benchmark_judges_a_valid_history_and_all_hold() -> None:
    found = bench(5_000)
    assert 4_000 <= found.events <= 5_000
    assert {result.code: result.outcome for result in found.results} == {
        f"D{number}": Outcome.HOLDS for number in range(1, 9)
    }
    assert found.elapsed_s > 0
    assert found.peak_bytes > 0


def test_a_stale_row_in_the_benchmark_s_history_is_found_and_told_briefly() -> None:
    history = make_history(keys=50, writes=2_000, commits=40, seed=3)
    hot = {"table": ["counter"], "key": ["0"], "session": [0], "number": [0], "kind": [1], "value": [0]}
    late = table_of("deliveries", {"segment": [41], "origin": ["chunk"], **hot})
    columns = {name: getattr(history, name) for name in history.__slots__}
    columns["deliveries"] = pa.concat_tables([history.deliveries, late])
    result = judge(History(**columns), [CHECK.code])[0]
    assert (result.outcome, result.violations) == (Outcome.VIOLATED, 1)
    case = result.witnesses[0]
    assert case.headline.startswith("counter 0: version 0 delivered by a chunk in segment 41 after version ")
    assert len(case.timeline) <= 24  # of hundreds of events of the hot key
    assert sum(moment.guilty for moment in case.timeline) == 2
