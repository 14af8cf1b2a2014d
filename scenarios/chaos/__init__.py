"""The user's own project under the catalogue's hazards: a workload by its schema, and a judge by its mapping."""
