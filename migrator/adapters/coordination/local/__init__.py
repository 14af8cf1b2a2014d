"""Leadership and runtime requests on one machine, without ZooKeeper."""
