"""The gates of a switch, which must hold before it begins: rows that are equal, reads that agree."""
