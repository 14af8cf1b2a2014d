"""Histories for tests of the judge of histories: made by hand, by Hypothesis, and a judge that is obviously right."""
