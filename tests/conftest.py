"""Settings that every test shares: hypothesis draws the same examples in every run and is never timed."""

from hypothesis import settings

settings.register_profile("chainscout", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("chainscout")
