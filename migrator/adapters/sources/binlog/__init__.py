"""The MySQL family's binary log, result sets and keyset reads: what the MySQL and MariaDB adapters share.

``settings`` connects; ``packet_stream`` -> ``events`` -> ``transactions`` turns the log into records, rows through
``table_map`` and ``row_decoder``; ``keyset`` and ``bulk_rows`` read chunks, ``result_set`` what is small.
What tells the two engines apart (GTIDs, witness, types, preflight) is in the adapters: subclasses of
``log_reader``,
``chunk_reader`` and ``catalog``, and a ``track``.
"""
