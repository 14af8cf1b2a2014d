"""The remedies for a JVM of Spark's that didn't start. The cause is the machine, Java, or in the JVM's last words."""

from __future__ import annotations

import errno

_FILES = "raise the limit of open files (ulimit -n), then start again"
_JAVA = "Spark needs a Java 17 or newer runtime: set JAVA_HOME, or put java on the PATH"
_BY_PRINT = {
    "JAVA_HOME is not set": _JAVA,
    "java: not found": _JAVA,
    "java: command not found": _JAVA,
    "bin/java: No such file": _JAVA,
    "UnsupportedClassVersionError": _JAVA,
    "Too many open files": _FILES,
    "Could not find or load main class": "a path of this installation has letters that the locale can't write:"
    " set LC_ALL=C.UTF-8, then start again",
    "Could not reserve enough space": "give the machine more memory, or Spark less (spark.driver.memory)",
    "insufficient memory": "give the machine more memory, or Spark less (spark.driver.memory)",
}


def remedy_for(error: Exception, printed: str) -> str:
    """Returns what to do, given what was raised here and what the JVM's log has of this start."""
    if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
        return _FILES
    if isinstance(error, FileNotFoundError) and "java" in str(error.filename):
        return _JAVA
    known = (remedy for said, remedy in _BY_PRINT.items() if said in printed)
    return next(known, "the log says why it ended; a Java older than 17 can't run it either")


def last_line(printed: str) -> str:
    """The last line of the log that isn't empty."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    return lines[-1] if lines else ""
