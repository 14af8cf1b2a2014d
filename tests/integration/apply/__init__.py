"""Batches on their way into the target: jobs, staging, leaders that were replaced."""
