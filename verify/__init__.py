"""The judge: is the target what the user's mapping makes of the source?

It has its own read-only sessions, its own catalogue reading and its own type rules, and imports nothing of the
capture and apply code it judges. Shared are errors, the frozen values of ``migrator.model``, the connection to MySQL
and MariaDB, and ``transforms``: the user's own mapping, its plan and how Spark runs it.

Reading order: ``settings`` -> ``source_reader`` and ``target_reader`` (two snapshots as Parquet files) ->
``normalise`` (both sides as canonical text) -> ``compare`` (exact, on Spark) -> ``live`` and ``rounds`` (under live
writes) -> ``explain`` (datacompy on the rows that differ) -> ``report``. ``run`` joins them for the command line.
"""
