"""The judge of histories."""
