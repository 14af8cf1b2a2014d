"""Moves a live application from an old database schema to a new one while users keep writing.

Stations of the pipeline, in the order the data flows: ``adapters/sources`` (log and chunks) -> ``core``
(reconciliation, in ``run/capture``) -> ``adapters/event_log`` (segments) -> ``run/apply`` (Spark mapping) ->
``adapters/targets`` (merge and ledger in one transaction).
"""

__version__ = "0.1.0"
