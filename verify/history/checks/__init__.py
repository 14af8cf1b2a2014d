"""The checkers, one module per definition; each is linear or near it in the history's rows.

A checker takes the ``Evidence`` of a history and gives a ``CheckResult``. It says *unknown* if it compared nothing.
The definitions use: ``Tj`` and ``Pj``, the target's state and position after commit j; ``src@p``, the source after
position p; ``Cov_j``, the keys under judgement at commit j (``verify.history.coverage``); ``ver``, the
version that a key shows.
"""
