"""The state of a run for those who watch it: questions on timers of their own, and one value of what is known."""
