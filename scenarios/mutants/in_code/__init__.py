"""Single changes to the code of the product and its judge, each of which a test must notice.

``change`` is one such change and the copy of the tree in which it is made. Each station has a table of
them, ``trial`` runs the tests, ``commands`` is ``migrator scenario code-mutants`` of all. The variants of
``scenarios.mutants.catalog`` are judged by checkers that read a recorded history. These changes are judged by the
fast tests: a survivor is a line of code that could be lost without any test failing.
"""
