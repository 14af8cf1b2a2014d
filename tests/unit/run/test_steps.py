"""Named points: all of them listed, wrong names refused, announced ones held, and no harness can hang a run."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from migrator.errors import ConfigError
from migrator.model.cutover.record import SWITCH, Phase
from migrator.run import steps
from migrator.run.steps import POINTS, no_step, step_hook
from scenarios.faults.points import PointServer

PRODUCT = Path(steps.__file__).parents[1]
CALL = re.compile(r"step\(\s*\"([a-z_]+\.[a-z_]+)\"\s*\)")
OF_A_PHASE = re.compile(r"step\(f\"cutover\.\{record\.phase\}(\w*)\"\)")
STEPS = (*SWITCH, Phase.UNDOING, Phase.FINISHING)
DEADLINE_S = 10.0


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PointServer]:
    with PointServer(tmp_path / "points") as started:
        yield started


def called_points() -> set[str]:
    texts = [path.read_text() for path in PRODUCT.rglob("*.py")]
    written = {name for text in texts for name in CALL.findall(text)}
    ends = [end for text in texts for end in OF_A_PHASE.findall(text)]
    return written | {f"cutover.{phase}{end}" for phase in STEPS for end in ends}


def test_every_point_of_the_product_is_listed_and_every_listed_point_exists() -> None:
    assert called_points() == set(POINTS)
    assert all(POINTS.values())


def test_without_variables_the_hook_is_the_one_that_does_nothing() -> None:
    assert step_hook({}) is no_step
    assert step_hook({"MIGRATOR_STEPS": "/nowhere", "MIGRATOR_STEP_POINTS": ""}) is no_step
    assert step_hook({"MIGRATOR_STEP_POINTS": "capture.chunk"}) is no_step


@pytest.mark.parametrize(
    "environment",
    [
        {"MIGRATOR_CRASH_AT": "capture.chunck"},
        {"MIGRATOR_CRASH_AT": "capture.chunk:0"},
        {"MIGRATOR_CRASH_AT": "capture.chunk:often"},
        {"MIGRATOR_STEPS": "/nowhere", "MIGRATOR_STEP_POINTS": "capture.chunk,nonsense"},
    ],
)
def test_a_point_that_can_never_be_reached_is_refused(environment: dict[str, str]) -> None:
    with pytest.raises(ConfigError) as refused:
        step_hook(environment)
    assert refused.value.where in environment
    assert refused.value.remedy


@pytest.mark.parametrize(("crash_at", "reached"), [("capture.chunk", 1), ("capture.chunk:3", 3)])
def test_the_process_kills_itself_at_the_nth_time(crash_at: str, reached: int) -> None:
    program = (
        "import sys\nfrom migrator.run.steps import step_hook\n"
        f"step = step_hook({{'MIGRATOR_CRASH_AT': {crash_at!r}}})\n"
        "for _ in range(9):\n    print('x', flush=True)\n    step('apply.mapped')\n    step('capture.chunk')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL
    assert done.stdout.count("x") == reached


def test_a_thread_is_held_at_its_point_until_the_answer(server: PointServer, tmp_path: Path) -> None:
    held, let_go, passed = threading.Event(), threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        assert let_go.wait(DEADLINE_S)

    server.on("capture.chunk", 2, hold)
    step = step_hook(server.environment())

    def work() -> None:
        step("capture.chunk")  # the first time: not held
        step("capture.chunk")
        passed.set()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert held.wait(DEADLINE_S)
    assert not passed.is_set()
    step("apply.mapped")  # another thread, another point: nobody asked for it
    let_go.set()
    assert passed.wait(DEADLINE_S)
    thread.join(DEADLINE_S)
    assert [(reached.point, reached.count) for reached in server.reached()] == [
        ("capture.chunk", 1),
        ("capture.chunk", 2),
    ]
    assert server.pending() == ()


def test_several_threads_may_be_held_at_once(server: PointServer) -> None:
    both = threading.Barrier(2)

    def meet() -> None:
        both.wait(DEADLINE_S)

    server.on("capture.chunk", 1, meet)
    server.on("apply.mapped", 1, meet)
    step = step_hook(server.environment())
    threads = [threading.Thread(target=step, args=(name,)) for name in ("capture.chunk", "apply.mapped")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    assert not any(thread.is_alive() for thread in threads)
    server.raise_failure()  # a barrier that one side never reached would have broken


def test_a_callback_that_fails_lets_the_pipeline_go_and_is_reported(server: PointServer) -> None:
    def fail() -> None:
        raise ConfigError("the fault can't be placed")

    server.on("capture.chunk", 1, fail)
    step_hook(server.environment())("capture.chunk")
    with pytest.raises(ConfigError, match="can't be placed"):
        server.raise_failure()


def test_a_point_is_awaited_with_a_deadline(server: PointServer) -> None:
    server.on("capture.chunk", 1, lambda: None)
    assert not server.wait("capture.chunk", 1, timeout_s=0.05)
    assert [(point, count) for point, count in server.pending()] == [("capture.chunk", 1)]
    step_hook(server.environment())("capture.chunk")
    assert server.wait("capture.chunk", 1, timeout_s=DEADLINE_S)


def test_points_are_counted_over_restarts_of_the_pipeline(server: PointServer) -> None:
    """The n-th time of a scenario is the n-th time in all: a restarted process doesn't begin anew."""
    seen: list[str] = []
    server.on("capture.chunk", 3, lambda: seen.append("third"))
    for _ in range(3):
        step_hook(server.environment())("capture.chunk")
    assert seen == ["third"]


def test_it_is_known_which_process_reached_a_point(server: PointServer) -> None:
    server.on("capture.chunk", 9, lambda: None)
    step_hook(server.environment())("capture.chunk")
    program = "import os; from migrator.run.steps import step_hook; step_hook(os.environ)('capture.chunk')"
    with subprocess.Popen(
        [sys.executable, "-c", f"{program}; print(os.getpid())"],
        env={**os.environ, **server.environment()},
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        said, _ = other.communicate(timeout=60)
    assert server.reached_by(int(said), "capture.chunk") == 1
    assert server.reached_by(os.getpid(), "capture.chunk") == 1
    assert server.reached_by(os.getpid(), "apply.mapped") == 0


def test_an_unknown_point_or_count_is_refused_by_the_listener(server: PointServer) -> None:
    with pytest.raises(ConfigError, match="nonsense"):
        server.on("nonsense", 1, lambda: None)
    with pytest.raises(ConfigError, match="0"):
        server.on("capture.chunk", 0, lambda: None)


def test_nobody_listening_holds_nobody(tmp_path: Path) -> None:
    environment = {"MIGRATOR_STEPS": str(tmp_path / "gone"), "MIGRATOR_STEP_POINTS": "capture.chunk"}
    step_hook(environment)("capture.chunk")


def test_a_listener_that_goes_away_while_it_holds_lets_go(tmp_path: Path) -> None:
    forever = threading.Event()
    held = threading.Event()

    def hold() -> None:
        held.set()
        forever.wait(DEADLINE_S)

    server = PointServer(tmp_path / "points")
    with server:
        server.on("capture.chunk", 1, hold)
        step = step_hook(server.environment())
        thread = threading.Thread(target=step, args=("capture.chunk",))
        thread.start()
        assert held.wait(DEADLINE_S)
        server.close()
        thread.join(DEADLINE_S)
        assert not thread.is_alive()
        step("capture.chunk")
        forever.set()


def test_a_listener_that_never_answers_is_left_after_the_longest_hold(
    server: PointServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "LONGEST_HOLD_S", 0.05)
    forever = threading.Event()

    def hold() -> None:
        forever.wait(DEADLINE_S)

    server.on("capture.chunk", 1, hold)
    step_hook(server.environment())("capture.chunk")
    forever.set()
