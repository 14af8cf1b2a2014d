"""Events of a binlog: their frames and fields."""
