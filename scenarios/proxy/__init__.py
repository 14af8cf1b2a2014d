"""A proxy between a run and its servers that delays, cuts and changes what passes."""
