"""The guarded HTTP server that `serve` and `watch` share."""
