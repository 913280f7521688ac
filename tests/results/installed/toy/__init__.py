"""A package that only tests install: a feature on the values of `null`, and an adapter of sleep."""
