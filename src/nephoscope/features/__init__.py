"""The analyses and commands of the program, one folder each."""
