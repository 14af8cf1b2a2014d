"""Commands beside the run: what they print, and what they do to real servers."""
