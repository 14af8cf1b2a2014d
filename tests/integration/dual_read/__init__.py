"""Both servers asked the same, under hot writes."""
