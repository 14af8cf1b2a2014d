"""OpenTelemetry: what the variables ask for, and what a collector gets: the scraped metrics, events, batches."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from migrator.adapters.observers.declared import COUNTER, METRICS
from migrator.adapters.observers.metrics import exposition
from migrator.adapters.observers.telemetry.asked import SIGNALS, Asked, asked
from migrator.adapters.observers.telemetry.sender import Telemetry, _Heard, installed
from migrator.model.observed.happening import ERROR, Happening
from migrator.model.observed.observation import COMMIT, MAP, StepTaken
from migrator.run.progress import Progress
from tests.unit.observers.collector import Collector
from tests.unit.observers.test_declared import FULL

AT_US = 1_795_991_829_350_475
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
EVERYTHING = tuple((signal, "otlp_proto_http") for signal in SIGNALS)


def _known(signal: str) -> frozenset[str]:
    return frozenset({"otlp_proto_http", "console"})


@pytest.mark.parametrize(
    ("environment", "exporters"),
    [
        ({}, ()),
        ({ENDPOINT: " "}, ()),
        ({"OTEL_SERVICE_NAME": "shop", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, ()),
        ({ENDPOINT: "http://c:4318"}, EVERYTHING),
        ({ENDPOINT: "http://c:4318", "OTEL_SDK_DISABLED": "TRUE"}, ()),
        ({ENDPOINT: "http://c:4318", "OTEL_LOGS_EXPORTER": "none"}, EVERYTHING[:2]),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://c/v1/metrics"}, EVERYTHING[1:2]),
        (
            {"OTEL_TRACES_EXPORTER": "otlp, console,otlp"},
            (("traces", "otlp_proto_http"), ("traces", "console")),
        ),
    ],
)
def test_the_variables_decide(environment: dict[str, str], exporters: tuple[tuple[str, str], ...]) -> None:
    assert asked(environment, _known) == Asked(exporters)


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"OTEL_METRICS_EXPORTER": "prometheus"}, "OTEL_METRICS_EXPORTER: Prometheus reads metrics at"),
        (
            {"OTEL_LOGS_EXPORTER": "zipkin"},
            "OTEL_LOGS_EXPORTER asks for the exporter 'zipkin', which isn't installed",
        ),
        (
            {"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"},
            "OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' isn't known here; write http/protobuf or grpc",
        ),
        (
            {"OTEL_EXPORTER_OTLP_LOGS_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_LOGS_PROTOCOL": "grpc"},
            "pip install 'dbmigrator[opentelemetry]' opentelemetry-exporter-otlp-proto-grpc",
        ),
    ],
)
def test_what_cant_be_done_is_named(environment: dict[str, str], words: str) -> None:
    found = asked(environment, _known)
    assert found.exporters == ()
    (problem,) = found.problems
    assert words in problem


def test_without_the_extra_it_is_named_once() -> None:
    (problem,) = asked({ENDPOINT: "http://c:4318"}, lambda signal: frozenset()).problems
    assert problem.startswith(f"{ENDPOINT} asks for the exporter 'otlp', which isn't installed")
    assert "pip install 'dbmigrator[opentelemetry]'" in problem


# -- a collector ----------------------------------------------------------------------------------------------------


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector, at which the variables point."""
    with Collector() as one:
        monkeypatch.setenv(ENDPOINT, one.address)
        yield one


def _telemetry(progress: Progress, exporters: tuple[tuple[str, str], ...] = EVERYTHING) -> Telemetry:
    about = {"service.name": "migrator", "migrator.migration": "shop"}
    return Telemetry(
        Asked(exporters), about, lambda: FULL, lambda what, words: progress.warn(what, *filter(None, [words]))
    )


def test_a_collector_gets_what_prometheus_scrapes(collector: Collector) -> None:
    _telemetry(Progress()).close()
    scraped = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(exposition(FULL).decode())
        for sample in family.samples
    }
    assert collector.samples() == scraped
    assert collector.counters() == {one.full_name for one in METRICS if one.kind == COUNTER} & {
        name for name, _ in scraped
    }


def test_the_variables_name_the_process(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "shop-migration")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=production")
    _telemetry(Progress()).close()
    found = collector.resource("/v1/metrics", "resource_metrics")
    assert found["service.name"] == "shop-migration"
    assert found["deployment.environment.name"] == "production"
    assert found["migrator.migration"] == "shop"


def test_events_arrive_whatever_they_hold(collector: Collector) -> None:
    telemetry = _telemetry(Progress())
    telemetry.event(AT_US, Happening("run.error", "a\n\ud800 \0 ä", ERROR, "\udfff"))
    telemetry.close()
    (record,) = collector.records()
    assert (record.event_name, record.time_unix_nano, record.severity_text) == (
        "run.error",
        AT_US * 1000,
        "ERROR",
    )
    assert record.body.string_value == "a\n? \0 ä"


def test_a_batch_is_one_trace(collector: Collector) -> None:
    progress = Progress()
    telemetry = _telemetry(progress)
    progress.watch_steps(telemetry.step)
    with progress.taking(MAP, 7):
        pass
    with progress.taking(MAP, 9):  # one runs ahead
        pass
    with pytest.raises(ConnectionError), progress.taking(COMMIT, 7):
        raise ConnectionError
    with progress.taking(COMMIT, 7):
        pass
    with progress.taking(COMMIT):
        pass
    telemetry.close()
    spans = collector.spans()
    (first,) = [s for s in spans if s.name == "batch" and s.attributes[0].value.int_value == 7]
    within = [s for s in spans if s.parent_span_id == first.span_id]
    assert [s.name for s in within] == [MAP, COMMIT, COMMIT]
    assert [s.attributes[0].value.string_value for s in within if s.attributes] == ["ConnectionError"]
    assert first.start_time_unix_nano == within[0].start_time_unix_nano
    assert first.end_time_unix_nano == within[-1].end_time_unix_nano
    assert sorted(s.name for s in spans if not s.parent_span_id) == ["batch", "batch", "fill"]


# -- when it goes wrong ---------------------------------------------------------------------------------------------


def test_what_a_collector_refuses_is_a_warning_until_it_takes_again(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    progress = Progress()
    collector.status = 400
    _telemetry(progress, EVERYTHING[1:2]).close()
    ((about, words),) = progress.warnings()
    assert about == "opentelemetry metrics"
    assert words.startswith("OpenTelemetry's metrics are lost: ")
    assert "400" in words
    collector.status = 200
    _telemetry(progress, EVERYTHING[1:2]).close()
    assert not progress.warnings()
    assert collector.samples()
    assert capfd.readouterr() == ("", "")  # the display of a run is the terminal's


@pytest.mark.parametrize(
    ("variable", "value"), [("OTEL_BSP_MAX_QUEUE_SIZE", "-7"), ("OTEL_BSP_SCHEDULE_DELAY", "soon")]
)
def test_a_variable_that_the_sdk_cant_read_is_a_warning(
    collector: Collector, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    progress = Progress()
    monkeypatch.setenv(variable, value)
    telemetry = _telemetry(progress, EVERYTHING[:1])
    telemetry.step(StepTaken(MAP, 1, AT_US, AT_US))
    telemetry.event(AT_US, Happening("run.phase", "streaming"))
    telemetry.close()
    ((about, words),) = progress.warnings()
    assert about == "opentelemetry variables of traces"
    assert words.startswith("OpenTelemetry's traces")


def test_the_sdks_words_are_others_again_afterwards(collector: Collector) -> None:
    logger = logging.getLogger("opentelemetry")
    before = (list(logger.handlers), logger.propagate)
    _telemetry(Progress()).close()
    assert (list(logger.handlers), logger.propagate) == before


def test_one_signals_words_arent_anothers() -> None:
    """Each is sent by a thread of its own, all at once."""
    heard, all_said, found = _Heard(), threading.Barrier(3), dict[str, str]()

    def fail(signal: str) -> None:
        logging.getLogger("opentelemetry.exporter").error("Failed to export %s.", signal)
        all_said.wait(30)
        found[signal] = heard.last

    threads = [threading.Thread(target=fail, args=(signal,)) for signal in SIGNALS]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    heard.close()
    assert found == {signal: f"Failed to export {signal}" for signal in SIGNALS}


def test_everything_that_is_asked_for_is_installed_for_tests() -> None:
    assert all("otlp_proto_http" in installed(signal) for signal in SIGNALS)
