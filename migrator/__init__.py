"""Moves a live application from an old database schema to a new one while users keep writing.

Stations of the pipeline, in the order the data flows: ``adapters/<engine>/log_reader`` and ``chunk_reader`` ->
``core`` (reconciliation) -> ``adapters/files`` (event log) -> ``run/apply_loop`` (Spark mapping) ->
``adapters/target_postgres`` (merge and ledger in one transaction).
"""

__version__ = "0.1.0"
