"""Values of a cut-over: what keeps a side from being written to."""
