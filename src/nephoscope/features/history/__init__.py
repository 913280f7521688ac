"""Stored runs over time: series, change points, confirmation of suspected changes, forecasts."""
