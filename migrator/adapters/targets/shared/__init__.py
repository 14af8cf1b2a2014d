"""What the targets that are SQL databases share besides the mirror: checks of mapped rows."""
