"""A soak's judge sees every leak that lasts, in whatever it measures, and takes no noise for one."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrator.errors import ConfigError
from scenarios.soak import report, sampling
from scenarios.soak.commands import seconds
from scenarios.soak.judgement import (
    BOUNDS,
    LEAST_SAMPLES,
    MIB,
    OF_A_PROCESS,
    Bound,
    Finding,
    Sample,
    judged,
    overall,
)
from scenarios.soak.play import Order, Played
from verify.history.result import CheckResult, Outcome

HOLDS, VIOLATED, UNKNOWN = Outcome.HOLDS, Outcome.VIOLATED, Outcome.UNKNOWN
LEVELS = {figure: 400.0 * MIB if figure.endswith("_bytes") else 80.0 for figure in BOUNDS}
LEAK = """
import os, sys, threading
kept = []
for line in sys.stdin:
    if sys.argv[1] == "memory":
        kept.append(os.urandom(4 << 20))
    elif sys.argv[1] == "descriptors":
        kept += [os.open("/dev/null", os.O_RDONLY) for _ in range(2)]
    elif sys.argv[1] == "threads":
        kept.append(threading.Thread(target=threading.Event().wait, daemon=True))
        kept[-1].start()
    print("done", flush=True)
"""


def soak(
    lives: int = 4, samples: int = 60, leaking: str = "", leak: float = 0.0, seed: int = 1
) -> list[Sample]:
    """Noise, warm-up, the saw's teeth of a garbage collector, spikes; and a figure that grows all the time."""
    rng, found = random.Random(seed), []
    for life in range(lives):
        for number in range(samples):
            figures = {}
            for figure, level in LEVELS.items():
                warm = min(1.0, 0.4 + number / samples * 2)  # a third of it
                teeth = 0.02 * level * (number % 7) / 7
                spike = level if rng.random() < 0.03 else 0.0
                value = level * warm * (1 + rng.uniform(-0.004, 0.004)) + teeth + spike
                if figure == leaking:
                    since = number if figure in OF_A_PROCESS else life * samples + number
                    value += leak * since
                figures[figure] = value
            found.append(Sample(float(life * samples + number), life + 1, figures))
    return found


@given(st.integers(0, 10_000))
def test_what_is_bounded_is_found_to_be(seed: int) -> None:
    samples = [
        # What outlives processes warms up once: the first life.
        Sample(
            each.at_s, each.life, {**each.figures, **{n: LEVELS[n] for n in BOUNDS if n not in OF_A_PROCESS}}
        )
        for each in soak(seed=seed)
    ]
    assert {each.figure: each.outcome for each in judged(samples)} == dict.fromkeys(BOUNDS, HOLDS)


@pytest.mark.parametrize("figure", BOUNDS)
def test_a_leak_of_any_figure_is_found(figure: str) -> None:
    """The negative control: twice what its bound allows, spread evenly over the judged stretch."""
    lives, samples = 4, 60
    stretch = (samples if figure in OF_A_PROCESS else lives * samples) * 2 / 3
    level = LEVELS[figure]
    leak = 2 * BOUNDS[figure].allowed(level * 1.5) / stretch
    found = {each.figure: each for each in judged(soak(lives, samples, figure, leak))}
    assert found[figure].outcome is VIOLATED
    assert found[figure].growth > found[figure].allowed


def test_a_leak_that_a_kill_gives_back_is_found_within_a_life() -> None:
    """Over the whole soak, many kills long, its line is flat."""
    samples = [Sample(float(n), n // 60, {"jvm_bytes": 100.0 * MIB + n % 60 * 4 * MIB}) for n in range(1200)]
    assert judged(samples, {"jvm_bytes": BOUNDS["jvm_bytes"]})[0].outcome is VIOLATED
    as_one = [Sample(each.at_s, 1, {"state_bytes": each.figures["jvm_bytes"]}) for each in samples]
    assert judged(as_one, {"state_bytes": BOUNDS["jvm_bytes"]})[0].outcome is HOLDS


def test_a_leak_in_one_life_of_many_is_found() -> None:
    samples = [
        Sample(float(n), n // 60, {"threads": 50.0 + (n % 60 if n // 60 == 2 else 0)}) for n in range(240)
    ]
    assert judged(samples, {"threads": BOUNDS["threads"]})[0].outcome is VIOLATED


def test_too_few_samples_are_no_pass() -> None:
    few = [Sample(float(n), 1, {"threads": 50.0}) for n in range(LEAST_SAMPLES)]
    assert judged(few, {"threads": Bound(0, 3)}) == (Finding("threads", UNKNOWN),)
    assert {each.outcome for each in judged([])} == {UNKNOWN}
    assert overall(()) is UNKNOWN
    missing = [Sample(each.at_s, each.life, {"threads": 50.0}) for each in soak()]
    assert overall(judged(missing)) is UNKNOWN


@pytest.mark.parametrize(
    ("exit_code", "final", "grows", "wanted"),
    [(0, HOLDS, False, HOLDS), (0, HOLDS, True, VIOLATED), (0, VIOLATED, False, VIOLATED),
     (0, UNKNOWN, False, UNKNOWN), (0, None, False, UNKNOWN), (2, HOLDS, False, VIOLATED),
     (None, HOLDS, False, VIOLATED)],
)  # fmt: skip
def test_a_soak_holds_only_if_all_of_it_does(
    exit_code: int | None, final: Outcome | None, grows: bool, wanted: Outcome
) -> None:
    check = (
        None if final is None else CheckResult("VERIFY", "the verifier says equal", final, 9, "rows", 0, ())
    )
    played = Played([], 60.0, 100, 3, 12, exit_code, check)
    findings = [Finding("threads", VIOLATED if grows else HOLDS, 50.0, 9.0, 3.0, 40.0, 60)]
    assert report.outcome(played, findings) is wanted
    told = report.text(Order(60.0), played, findings, "2 cores")
    assert told.endswith(wanted.value.upper())
    assert f"| threads | 50.0 | +9.0 | 3.0 | 40 | 60 | {'GROWS' if grows else 'bounded'} |" in told
    assert report.document(Order(60.0), played, findings, "2 cores")["outcome"] == wanted.value


@pytest.mark.parametrize(
    ("leak", "figure"),
    [("memory", "python_bytes"), ("descriptors", "descriptors"), ("threads", "threads"), ("nothing", "")],
)
def test_a_process_that_leaks_is_measured_and_found(leak: str, figure: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", LEAK, leak], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        samples = []
        for number in range(3 * LEAST_SAMPLES):
            process.stdin.write("once more\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done\n"
            samples.append(Sample(float(number), 1, sampling.processes(process.pid)))
        process.stdin.close()
    found = judged(samples, {name: BOUNDS[name] for name in OF_A_PROCESS})
    assert [each.figure for each in found if each.outcome is VIOLATED] == ([figure] if figure else [])
    assert sampling.processes(process.pid) == {}


def test_a_folder_is_as_large_as_its_files(tmp_path: Path) -> None:
    before = sampling.folder_bytes(tmp_path)
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").write_bytes(b"x" * MIB)
    assert sampling.folder_bytes(tmp_path) - before >= MIB


def test_a_duration_is_read_or_refused() -> None:
    assert [seconds(text) for text in ("90s", "30m", "4h", "1.5h")] == [90, 1800, 14400, 5400]
    for text in ("", "4", "h", "-1h", "0s", "4 hours", "nan h"):
        with pytest.raises(ConfigError, match="is no duration"):
            seconds(text)
