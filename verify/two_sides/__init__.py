"""The judge of cut-overs: clients of two sides, one of which is open, and whether they lost or doubled anything.

Pure: a history in, verdicts out. Runs on servers and the machine's histories in memory are judged by the same code.
"""
