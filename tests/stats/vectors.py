"""The two series that the statistics are checked on: n = 15, ms, one outlier each on purpose."""

A = [102, 98, 101, 97, 103, 99, 100, 104, 96, 100, 105, 95, 101, 99, 130]
B = [107, 103, 109, 104, 106, 108, 105, 110, 102, 106, 111, 101, 107, 104, 140]
