"""Starts Spark's Python workers on this machine, as PySpark's own daemon does, and none of them ends with a
SIGTERM.

systemd tells every process of a service to end. A batch under way then finishes, and Spark ends its workers itself,
by closing what they read. Nothing else is imported here: workers are forked, and libraries' threads would be lost.
"""

from __future__ import annotations

import os
import signal
import sys

from pyspark.daemon import manager

if __name__ == "__main__":
    signal.pthread_sigmask(
        signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM}
    )  # PySpark sets handlers of its own
    sys.path.append(os.getcwd())  # what stands beside a mapping is found, after all that is installed
    manager()
