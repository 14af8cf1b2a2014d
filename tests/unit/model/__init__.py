"""Values that all stations share, and how they are written down."""
