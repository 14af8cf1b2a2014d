"""A real run that sends to a collector of OpenTelemetry, and one whose collector isn't there."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from scenarios.bench.orders.old_schema import create
from tests.integration import run_project
from tests.integration.run_project import Project, scenario_database
from tests.servers import Database
from tests.unit.observers.collector import Collector

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.slow]

ROWS = 300
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.fixture
def project(tmp_path: Path, old_pg: Database, new_pg: Database) -> Project:
    """Orders to move, and nobody who writes."""
    create(scenario_database(old_pg), ROWS)
    return run_project.make(tmp_path / "project", old_pg, new_pg)


def test_a_collector_gets_metrics_events_and_batches_of_a_run(project: Project) -> None:
    with Collector() as collector:
        process = project.process(
            "run", "--plain", "--until", "caught-up", environment={ENDPOINT: collector.address}
        )
        out, _ = process.communicate(timeout=600)
        assert process.returncode == 0, out
        amounts = {name: amount for (name, _), amount in collector.samples().items()}
        assert "migrator_leading" in amounts  # 0 in the last ones: it had ended
        assert amounts["migrator_applied_dump_rows_total"] >= ROWS
        events = [record.event_name for record in collector.records()]
        assert events[0] == "run.started"
        assert events[-1] == "run.ended"
        counted = Counter(span.name for span in collector.spans())
        assert counted["batch"] == counted["map"] == counted["commit"] > 0
        assert collector.resource("/v1/traces", "resource_spans")["service.name"] == "migrator"
    assert not project.differences()


def test_a_collector_that_isnt_there_costs_the_run_nothing_but_a_warning(project: Project) -> None:
    environment = {ENDPOINT: "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_TIMEOUT": "1"}
    environment |= {"OTEL_BSP_SCHEDULE_DELAY": "200", "OTEL_METRIC_EXPORT_INTERVAL": "500"}
    process = project.process("run", "--plain", "--until", "caught-up", environment=environment)
    out, _ = process.communicate(timeout=600)
    assert process.returncode == 0, out
    assert "OpenTelemetry's metrics are lost: " in out
    assert "Traceback" not in out
    assert not project.differences()
