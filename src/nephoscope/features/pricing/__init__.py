"""Prices as functions of service: tariffs by size and throughput, and the utility of offers."""
