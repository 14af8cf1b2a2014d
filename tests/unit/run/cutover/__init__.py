"""The machine of a cut-over over two sides in memory."""
