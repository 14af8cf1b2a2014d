"""Benchmarks: what their writers say, and that their figures are none of chance."""
