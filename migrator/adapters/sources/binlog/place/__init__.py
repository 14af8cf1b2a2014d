"""Places in a binlog: transactions read, undecided ones, and the proof that it is the same log."""
