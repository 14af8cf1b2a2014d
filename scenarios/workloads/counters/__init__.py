"""Counters: ``value = value + n`` in the server, beside an insert-only ledger of all increments."""
