"""Broken variants of the product and of its judge: each must be caught, or the checks prove nothing.

``catalog`` is the table, ``broken_capture`` and ``broken_apply`` are the variants, ``servers`` breaks the
adapters of real servers likewise, ``kill`` measures which checkers catch which variant.
``python -m scenarios.mutants NAME run ...`` is ``migrator run ...`` with one rule broken.
"""
