"""The whole pipeline in one deterministic process: the real core, loops and event log between models of databases.

``source`` models the old database, ``clients`` write into it, ``process`` is one ``migrator run`` whose threads are
steps, ``world`` lets a list of decisions choose whose step comes next, ``record`` turns what happened into a
history for the judge, ``shrink`` makes a failing list of decisions small.
"""
