"""Rules by which a live page judges a run: its last hour, what fell off in it, what is wrong."""
