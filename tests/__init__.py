"""Tests, by cost: unit (no servers), contract, simulation (pure), integration (real servers)."""
