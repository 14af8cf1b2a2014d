"""The decisions of capture: where chunk rows go in the log, what is dropped, what is read next.

Rules for what may live here: no I/O, no clock, no randomness, no threads, no logging. State machines take inputs
and return outputs; the shells in ``migrator.run`` act on them. That is what lets ``tests/simulation`` run thousands
of interleavings a minute under a seed.
"""
