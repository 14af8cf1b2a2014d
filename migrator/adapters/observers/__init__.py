"""Ways in which a run tells of itself to who asks."""
