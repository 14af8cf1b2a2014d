"""A JVM that doesn't start: Java is blamed only where Java is to blame."""

from __future__ import annotations

import errno

import pytest

from transforms.on_spark.unstarted import last_line, remedy_for

ENDED = RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number.")


@pytest.mark.parametrize(
    ("error", "printed", "remedy"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "", "limit of open files"),
        (ENDED, "library initialization failed\nerror: Too many open files\n", "limit of open files"),
        (ENDED, "JAVA_HOME is not set\n", "Java 17 or newer"),
        (ENDED, "spark-class: line 71: /opt/x/bin/java: No such file or directory", "Java 17 or newer"),
        (ENDED, "java.lang.UnsupportedClassVersionError: org/apache/spark/Main", "Java 17 or newer"),
        (FileNotFoundError(errno.ENOENT, "No such file", "/opt/x/bin/java"), "", "Java 17 or newer"),
        (ENDED, "Error: Could not find or load main class org.apache.spark.Main", "LC_ALL=C.UTF-8"),
        (ENDED, "There is insufficient memory for the Java Runtime Environment", "memory"),
        (ENDED, "something else", "the log says why"),
    ],
)
def test_the_remedy_is_of_what_went_wrong(error: Exception, printed: str, remedy: str) -> None:
    assert remedy in remedy_for(error, printed)
    if remedy != "Java 17 or newer":
        assert "JAVA_HOME" not in remedy_for(error, printed)


def test_the_last_thing_that_was_said_is_the_cause() -> None:
    assert last_line("first\n\n last \n\n") == "last"
    assert last_line("") == ""
