"""The judge piece by piece: hashes by the servers, keys, computed columns."""
