"""Wrong options of a fault are refused by name, before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from migrator.errors import ConfigError, MigratorError
from scenarios.faults.registry import check, fault_names, sides_with_proxy
from scenarios.scenario import FaultSpec
from scenarios.world import World
from tests.integration.scenarios.faults.fault_world import as_test_database, make_world, placed

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    ("do", "options", "named"),
    [
        ("nonsense", {}, "nonsense"),
        ("kill_server", {}, "side"),
        ("kill_server", {"side": "middle"}, "middle"),
        ("latency", {"ms": -1}, "ms"),
        ("latency", {"ms": 5, "jitter": 1}, "jitter"),
        ("throttle", {"bytes_per_s": "many"}, "many"),
        ("reset_around_commit", {"when": "during"}, "during"),
        ("sql", {"side": "source", "sql": []}, "sql"),
        ("half_open", {"resume": "yes"}, "yes"),
        ("stop_continue", {}, "seconds"),
        ("rotate_log", {"side": "target"}, "target"),
    ],
)
def test_a_wrong_option_is_refused_by_name(do: str, options: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        check(FaultSpec(do, options=options))


def test_a_wrong_point_is_refused_and_the_vocabulary_is_whole() -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        check(FaultSpec("kill_pipeline", at="nowhere:3"))
    with pytest.raises(ConfigError, match="capture"):
        check(FaultSpec("kill_pipeline", at="capture.chunk:x"))
    check(FaultSpec("kill_pipeline", at="capture.chunk:3"))
    assert len(fault_names()) >= 33


def test_network_faults_say_which_side_needs_a_proxy(world: World) -> None:
    specs = [FaultSpec("half_open", options={"side": "target"}), FaultSpec("kill_pipeline")]
    assert sides_with_proxy(specs) == {"target"}
    bare = make_world(world.folder / "project", as_test_database(world), world.source.server)[0]
    with pytest.raises(MigratorError, match="needs a proxy"):
        placed(bare, "refuse").fire()
