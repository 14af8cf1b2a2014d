"""The judge: is the target what the user's mapping makes of the source?

It has its own read-only connections, its own catalogue reading and its own type rules, and shares nothing with the
capture and apply code it judges, apart from the frozen values of ``migrator.model`` and the user's own mapping.

Reading order: ``settings`` -> ``source_reader`` and ``target_reader`` (two snapshots as Parquet files) ->
``normalise`` (both sides as canonical text) -> ``compare`` (exact, on Spark) -> ``live`` and ``rounds`` (under live
writes) -> ``explain`` (datacompy on the rows that differ) -> ``report``. ``run`` joins them for the command line.
"""
