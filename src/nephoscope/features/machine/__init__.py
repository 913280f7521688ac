"""Describes the measured machine: findings, memory knees, scaling, consistency laws."""
