"""The way back as a mapping: what is derived, and what comes back."""
