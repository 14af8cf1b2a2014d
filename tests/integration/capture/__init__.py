"""Capture of a real source: dumps beside the log, and what they take."""
