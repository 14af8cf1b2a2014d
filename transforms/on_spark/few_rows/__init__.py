"""The few rows of a small batch: plans of one partition over rows in memory, run by the driver."""
