"""The fleet check: which of many targets differ from the others, and in what."""
