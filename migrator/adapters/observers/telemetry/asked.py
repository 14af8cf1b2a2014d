"""The exporters for which OpenTelemetry's environment variables ask.

The variables and their defaults are OpenTelemetry's ("Environment Variable Specification", "OpenTelemetry Protocol
Exporter"), but for one: without any of them nothing is sent, not to a collector at localhost either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

TRACES, METRICS, LOGS = "traces", "metrics", "logs"
SIGNALS = (TRACES, METRICS, LOGS)
_PROTOCOLS = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}
"""The protocols of OTLP, each with the name under which its exporter is registered."""
_PACKAGES = {
    "otlp_proto_http": "'dbmigrator[opentelemetry]'",
    "console": "'dbmigrator[opentelemetry]'",
    "otlp_proto_grpc": "'dbmigrator[opentelemetry]' opentelemetry-exporter-otlp-proto-grpc",
}

Installed = Callable[[str], frozenset[str]]
"""Finds the names of a signal's exporters that are installed."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Exporters by signal, and what is wrong with the variables that ask for more.

    Attributes:
        exporters: pairs of signal and registered name, in the order in which they were asked for.
        problems: variable, value, cause and remedy, a text each.
    """

    exporters: tuple[tuple[str, str], ...] = ()
    problems: tuple[str, ...] = ()

    def of(self, signal: str) -> tuple[str, ...]:
        """Returns the registered names of a signal's exporters."""
        return tuple(name for one, name in self.exporters if one == signal)


def asked(environment: Mapping[str, str], installed: Installed) -> Asked:
    """Reads the variables. An empty one counts as one that isn't set."""
    if _value(environment, "OTEL_SDK_DISABLED").lower() == "true":
        return Asked()
    exporters: list[tuple[str, str]] = []
    problems: list[str] = []
    for signal in SIGNALS:
        for variable, word in _words(environment, signal):
            name, problem = _exporter(environment, signal, variable, word)
            if not problem and name not in installed(signal):
                problem = _absent(variable, word, name)
            if problem:
                problems.append(problem)
            elif name:
                exporters.append((signal, name))
    return Asked(tuple(dict.fromkeys(exporters)), tuple(dict.fromkeys(problems)))


def _words(environment: Mapping[str, str], signal: str) -> list[tuple[str, str]]:
    """The exporters' names as they are written, each with the variable that asks for it."""
    listed = f"OTEL_{signal.upper()}_EXPORTER"
    if words := _value(environment, listed):
        return [
            (listed, word.strip())
            for word in words.split(",")
            if word.strip() and word.strip().lower() != "none"
        ]
    for variable in (f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"):
        if _value(environment, variable):
            return [(variable, "otlp")]
    return []


def _exporter(environment: Mapping[str, str], signal: str, variable: str, word: str) -> tuple[str, str]:
    """The registered name for a written one, or what is wrong with it."""
    if word.lower() == "prometheus":
        return (
            "",
            f"{variable}: Prometheus reads metrics at the address of [observe] listen; set that instead",
        )
    if word.lower() != "otlp":
        return word, ""
    for protocol in (f"OTEL_EXPORTER_OTLP_{signal.upper()}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        if value := _value(environment, protocol):
            name = _PROTOCOLS.get(value.lower(), "")
            return (
                name,
                "" if name else f"{protocol}: {value!r} isn't known here; write {' or '.join(_PROTOCOLS)}",
            )
    return _PROTOCOLS["http/protobuf"], ""


def _absent(variable: str, word: str, name: str) -> str:
    package = _PACKAGES.get(name)
    how = (
        f"pip install {package}"
        if package
        else "install the package that has it, or write otlp, console or none"
    )
    missing = f"{variable} asks for the exporter {word!r}, which isn't installed"
    return f"{missing}: {how}, or set OTEL_SDK_DISABLED=true"


def _value(environment: Mapping[str, str], variable: str) -> str:
    return environment.get(variable, "").strip()
