"""Hours of one migration under writers, kills and dump requests: no resource that it holds may grow for ever."""
