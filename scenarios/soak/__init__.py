"""Hours of one migration under writers, kills and dump requests: nothing that it holds may grow for ever."""
