"""Recorders: what turns a run on real servers into a history, by other means than the pipeline's own."""
