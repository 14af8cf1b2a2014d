"""Next mappings of row-wise targets, which come into force while the stream goes on."""
