"""Histories of runs, and the checkers that judge them (definitions D1 to D8).

A history is what was recorded of one run: operations of every client, the source log, deliveries into the
event log, every target commit, observers' reads, faults. The checkers need nothing else: no server, no clock,
no product code.
"""
