"""The PostgreSQL target: reflection, staging, merge and ledger in one transaction of one ADBC connection.

Reading path: ``settings`` (where), ``reflect`` (what the tables look like), ``encode`` (Arrow values as the binary
COPY form of their columns), ``staging`` (kept temporary tables), ``merge`` (the SQL), ``writer`` (one batch inside
its transaction), ``target`` (transaction, ledger, unknown outcomes), ``preflight`` (what stands in the way).
"""
