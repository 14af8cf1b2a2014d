"""The event log as a directory of files: Parquet data, one JSON manifest per segment."""
