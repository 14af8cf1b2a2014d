"""Capture alone, measured beside others: from the source into an event log on disk, without Spark and target.

``ours`` runs the product's own capture loop; ``debezium`` Debezium's embedded engine, whose records are counted and
dropped; ``library`` mysql-replication's own reader and decoder; ``load`` pgbench or sysbench beside a dump.
"""
