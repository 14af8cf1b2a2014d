"""The shells: loops that move data between ports and the pure core. Threads, retries and time live here."""
