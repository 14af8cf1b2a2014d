"""The ports in memory, for simulations: same contracts, thread-safe, no clock, no waiting."""
