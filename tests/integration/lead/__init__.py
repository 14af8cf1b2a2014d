"""Who leads, among several processes and members of an ensemble."""
