"""What who leads does before the loops: the epoch, the place to go on from, what was changed since."""
