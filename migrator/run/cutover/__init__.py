"""A cut-over as the leader carries it out: a thread beside the run."""
