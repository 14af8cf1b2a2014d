"""PostgreSQL as a source without its log: triggers fill change tables, which are polled.

The order problem and its solution: docs/decisions/0020.
"""
