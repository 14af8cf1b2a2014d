"""Tests of the judge of cut-overs."""
