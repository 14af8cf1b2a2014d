"""The demo migration: a year of real New York departures, held the way a legacy system would hold them."""
