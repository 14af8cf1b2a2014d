"""Workloads whose rows carry provenance, each with its old schema, its migration project and its writers."""
