"""Deployments that keep an objective of response time, the cheapest first."""
