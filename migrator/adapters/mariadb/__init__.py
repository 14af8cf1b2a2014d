"""MariaDB as a source: catalog, preflight, log reader, chunk reader, witness and watermarks.

``settings`` connects; ``catalog`` and ``preflight`` look at the server; ``log_reader`` turns the binary log into
transactions (``packet_stream`` -> ``binlog_events`` -> ``transactions``, rows through ``table_map`` and
``row_decoder``); ``chunk_reader`` reads chunks with a ``witness`` from the same snapshot.
"""
