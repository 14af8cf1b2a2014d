"""Who leads, and what is asked of the leader."""
