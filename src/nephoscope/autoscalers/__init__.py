"""Programs that run on the hosts of an experiment on elasticity, under the system's Python alone.

They import nothing but the standard library and each other, and print what they observe as lines of
JSON, each with `at_ns` on the wall clock.
"""
