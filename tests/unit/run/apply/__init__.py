"""Apply's loop and jobs."""
