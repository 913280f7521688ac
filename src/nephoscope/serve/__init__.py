"""The dashboard: stored runs and runs in progress over HTTP, as JSON documents and as a page."""
