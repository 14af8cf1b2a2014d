"""The state of a migration as it is seen from outside its loops: by `status`, metrics and health."""
