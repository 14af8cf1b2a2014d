"""Change events as batches that are sent to an API by HTTP."""
