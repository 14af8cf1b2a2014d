"""The judge: is the target what the user's mapping makes of the source?

It has its own read-only sessions, its own catalogue reading and its own type rules, and imports nothing of the
capture and apply code it judges. Shared are errors, the frozen values of ``migrator.model``, how servers are reached
(``migrator.connections``), and ``transforms``: the user's own mapping, its plan and how Spark runs it.

Reading order: ``tables.run`` (the command) -> ``readers`` (snapshots of both sides) -> ``tables.compare`` (both sides
as canonical text, compared exactly on Spark) -> ``tables.rounds`` (again and again under live writes) ->
``tables.sweeps`` and ``tables.hashed_by_servers`` (large tables in chunks, by digests) -> ``tables.findings``
(datacompy on the rows that differ) -> ``report``.
``dual_read`` compares an application's own queries, ``history`` a recorded scenario.
"""
