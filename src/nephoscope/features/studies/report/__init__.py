"""The comparison as a page, as charts and as files."""
