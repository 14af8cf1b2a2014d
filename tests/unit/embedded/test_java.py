"""Reading the version out of `java -version`."""

from __future__ import annotations

import pytest

from migrator.embedded.java import parse_version


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "25" 2025-09-16', 25),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\njava version "1.8.0_392"', 8),
        ("bash: java: command not found", None),
    ],
)
def test_the_major_version_is_found(text: str, version: int | None) -> None:
    assert parse_version(text) == version
