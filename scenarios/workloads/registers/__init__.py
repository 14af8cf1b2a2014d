"""Registers: keyed values that only rise, by steps that no other write has."""
