"""What every test shares: hypothesis draws the same examples in every run and is never timed; a problem."""

import signal
from importlib.util import find_spec

import pytest
from hypothesis import settings

import chainscout as cs

settings.register_profile("chainscout", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("chainscout")

#: These compare with deeptime, which has no wheel for Python 3.14 yet.
collect_ignore = [] if find_spec("deeptime") else ["test_conversions.py", "test_logs_results.py"]

# A shell that runs the tests in the background has them ignore Ctrl-C, and so would every program that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def unlike() -> cs.Problem:
    return cs.problems.get("unlike")
