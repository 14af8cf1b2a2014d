"""Spark's surroundings, the same whatever our environment says: English, UTC, UTF-8, for JVMs and Python's workers.

The locale decides what ``lower`` makes of a letter (a Turkish one has no dot). The zone decides what a mapping's
datetimes mean to Spark, in this process and in workers. The encoding decides what a file is called. Java takes all
three from the environment, and then from options (JAVA_TOOL_OPTIONS), so they are set twice.

The clocks of other zones come with Java: countries change their rules. Nobody can set that, so that all of a cluster
must have the same.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping
from typing import Any

from migrator.errors import ConfigError

_ENVIRONMENT: Mapping[str, str] = {"LC_ALL": "C.UTF-8", "TZ": "UTC"}
EXECUTORS: Mapping[str, str] = {f"spark.executorEnv.{name}": value for name, value in _ENVIRONMENT.items()}
"""Settings that give a cluster's executors the same surroundings. Executors whose JVM options differ are refused."""
LOCALE, ZONE, ENCODING = "en_US", "UTC", "UTF-8"
_VERSION = re.compile(r"[{ ]([^ =]+)=")


def pin_process() -> None:
    """Gives the surroundings to this process and its children; Spark reads naive datetimes in the process's zone."""
    os.environ.update(_ENVIRONMENT)
    # Else settings and tasks of one thread are met in another's calls.
    os.environ["PYSPARK_PIN_THREAD"] = "true"
    time.tzset()


def pin_jvm(jvm: Any) -> None:
    """Gives a JVM the surroundings before Spark begins in it.

    Raises ``ConfigError`` for a JVM with another encoding, which can't be changed any more.
    """
    jvm.java.util.Locale.setDefault(jvm.java.util.Locale.forLanguageTag(LOCALE.replace("_", "-")))
    jvm.java.util.TimeZone.setDefault(jvm.java.util.TimeZone.getTimeZone(ZONE))
    found = str(jvm.java.nio.charset.Charset.defaultCharset().name())
    if found != ENCODING:
        raise ConfigError(
            f"Spark's JVM has another encoding than {ENCODING}",
            where=f"file.encoding={found}",
            cause="texts and names of files would lose what that encoding doesn't have",
            remedy="remove -Dfile.encoding from JAVA_TOOL_OPTIONS, JDK_JAVA_OPTIONS, _JAVA_OPTIONS and"
            f" spark.driver.extraJavaOptions, or set it to {ENCODING} there",
        )


def zone_data(jvm: Any) -> str:
    """Returns the year and letter of a JVM's zone data, such as 2025a."""
    return _newest(str(jvm.java.time.zone.ZoneRulesProvider.getVersions(ZONE).toString()))


def wrong_in_executors(spark: Any, tasks: int) -> tuple[list[str], list[str]]:
    """Returns the JVM options in which executors differ from the driver, and their zone data where that differs.

    Runs one job of that many tasks.
    """
    asked = spark.range(0, tasks, 1, tasks).selectExpr(
        "java_method('java.util.Locale', 'getDefault') AS locale",
        "java_method('java.time.ZoneId', 'systemDefault') AS zone",
        "java_method('java.nio.charset.Charset', 'defaultCharset') AS encoding",
        f"java_method('java.time.zone.ZoneRulesProvider', 'getVersions', '{ZONE}') AS data",
    )
    found, others, ours = set(), set(), zone_data(spark._jvm)
    for locale, zone, encoding, data in asked.distinct().collect():
        if locale.partition("_")[0] not in ("", "en"):
            found.add(f"user.language={locale}")
        if zone not in (ZONE, f"Etc/{ZONE}"):
            found.add(f"user.timezone={zone}")
        if encoding != ENCODING:
            found.add(f"file.encoding={encoding}")
        if _newest(data) != ours:
            others.add(_newest(data))
    return sorted(found), sorted(others)


def _newest(versions: str) -> str:
    """Returns the last of the versions that Java prints, each with its rules."""
    return str(_VERSION.findall(versions)[-1])
