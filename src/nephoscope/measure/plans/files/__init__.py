"""Plan files: reads them with what they include."""
