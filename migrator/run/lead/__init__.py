"""The leader's work before the loops: its epoch, where to go on from, what was changed since."""
