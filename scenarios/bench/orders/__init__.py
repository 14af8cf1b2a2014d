"""The benchmark's migration project: one ten-column table, mapped row by row, in any number of rows."""
