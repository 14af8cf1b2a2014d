"""Dual read: the same question to the old and the new database, with positions, so that lag is never taken
for a bug.

For applications: ``DualRead``. From a file of queries or a captured log: ``verify.dual_read.runner``.
"""

from verify.dual_read.application import DualRead, Limits
from verify.dual_read.verdict import Rules

__all__ = ["DualRead", "Limits", "Rules"]
