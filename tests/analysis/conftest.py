"""Property tests repeat themselves exactly and have no deadline: machines are noisy."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "exact", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("exact")
