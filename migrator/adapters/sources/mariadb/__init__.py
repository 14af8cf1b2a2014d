"""MariaDB as a source: its GTIDs, its witness, its types and preflight; the rest is
``migrator.adapters.sources.binlog``.

``log_request`` asks for the log, ``track`` follows its GTIDs; ``witness`` tells where in the log a chunk's
consistent snapshot stands.
"""
