"""MySQL as a source: its GTID sets, its witness, its types and preflight; the rest is
``migrator.adapters.sources.binlog``.

``log_request`` asks for the log, ``track`` follows its GTIDs; the witness of a chunk is the set of GTIDs that the
server had made visible before the SELECT began.
"""
