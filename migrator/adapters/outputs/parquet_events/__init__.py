"""Change events as folders of typed Parquet files."""
