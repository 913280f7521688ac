"""Programs that the API of a cluster starts in a container: Kubernetes, LXD."""
