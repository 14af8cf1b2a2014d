"""Throw-away local servers for the demo, the tests and the benchmark: PostgreSQL, MariaDB, MySQL, ZooKeeper,
a Spark cluster, and a Java.

Nothing here is needed to run a migration against real servers, so the wheels it uses are the ``embedded``
extra. Every server listens on 127.0.0.1 only, keeps all its files in the directory it is given, and ends with
its parent.
"""
