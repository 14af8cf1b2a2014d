"""Single changes to the code of the product and its judge, each of which a test must notice.

``change`` is one such change and the copy of the tree that it is made in, ``table`` gathers the tables of all
stations,
``trial`` runs the tests, ``commands`` is ``migrator scenario code-mutants``. Unlike the variants of
``scenarios.mutants.catalog``, which the checkers judge by a recorded history, these are judged by the fast tests: a
survivor is a line that could be lost without anybody's notice.
"""
