"""The judge of tables: planted differences, live writes, broken judges."""
