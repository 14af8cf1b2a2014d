"""Settings of a topic, judged: whether what is written there stays for those who read later."""

from __future__ import annotations

from collections.abc import Mapping

from migrator.errors import OutputError

POLICY, RETENTION_MS, RETENTION_BYTES = "cleanup.policy", "retention.ms", "retention.bytes"
PLACE = {POLICY: "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "3600000"}
"""Settings of the topic with the place, where we make it."""
TABLE = {POLICY: "delete", RETENTION_MS: "-1", RETENTION_BYTES: "-1"}
"""Settings of a table's topic, where we make it: nothing is ever removed."""

_COMPACT = (
    "kafka-configs.sh --alter --entity-type topics --entity-name {} --add-config cleanup.policy=compact"
)


def is_compacted(settings: Mapping[str, str]) -> bool:
    """Tells whether only the last message of each key stays."""
    return "compact" in _policies(settings)


def check_place(topic: str, settings: Mapping[str, str]) -> None:
    """Refuses a topic from which the place may vanish. Raises ``OutputError``."""
    if _policies(settings) != {"compact"}:
        raise OutputError(
            "the topic with the place doesn't keep it",
            where=topic,
            cause=f"{POLICY}={settings.get(POLICY, '')}: a place that is old would be removed",
            remedy=_COMPACT.format(topic),
        )


def check_table(topic: str, settings: Mapping[str, str]) -> str:
    """Returns a warning of a table's topic, empty for none. Raises ``OutputError`` for one that loses rows."""
    short = [name for name in (RETENTION_MS, RETENTION_BYTES) if settings.get(name, "-1") != "-1"]
    limits = ", ".join(f"{name}={settings[name]}" for name in short)
    if "delete" not in _policies(settings) or not short:
        return ""
    if is_compacted(settings):
        raise OutputError(
            "a compacted topic would lose rows that are still there",
            where=topic,
            cause=f"{POLICY}={settings[POLICY]} with {limits}: old rows are removed, and nobody is limits",
            remedy=_COMPACT.format(topic),
        )
    return f"{topic} removes old messages ({limits}): who begins to read later than that lacks rows"


def _policies(settings: Mapping[str, str]) -> set[str]:
    return {one.strip() for one in settings.get(POLICY, "delete").split(",")}
