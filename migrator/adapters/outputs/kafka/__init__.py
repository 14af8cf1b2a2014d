"""Change events as messages of Kafka topics, in transactions that hold their own place."""
