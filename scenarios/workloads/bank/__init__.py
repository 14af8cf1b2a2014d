"""Bank: transfers across two tables in one transaction, whose total never changes."""
