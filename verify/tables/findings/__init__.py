"""What differs, why, and what mends it."""
