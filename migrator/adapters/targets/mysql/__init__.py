"""The MySQL and MariaDB target: reflection, staging, merge and ledger in one transaction of one connection.

Reading path: ``settings`` (where), ``reflect`` and ``types`` (what tables look like), ``encode`` and ``file_text``
(Arrow values as exact text), ``staging`` (kept temporary tables), ``merge`` (the SQL), ``writer`` (one batch inside
its transaction), ``target`` (transaction, ledger, unknown outcomes), ``preflight`` (what stands in the way).
"""
