"""sysbench: the benchmark program as a foreign client of either engine, beside a tracked table."""
