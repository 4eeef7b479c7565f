"""Errors reach another process as they are: executors send them by pickle."""

import pickle

import pytest

from chainscout import errors
from chainscout.study import StopReason, Study

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
GIVEN = {"StudyFinished": ("it is over", StopReason.BUDGET), "MissingExtraError": ("a page", "serve")}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_error_survives_pickling(kind):
    error = kind(*GIVEN.get(kind.__name__, ("one sentence",)))
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (kind, str(error), vars(error))


def test_why_a_study_stopped_survives_pickling():
    study = Study.create(None, {"a": 2}, budget=1)
    study.tell("a", 0)
    with pytest.raises(errors.StudyFinished) as caught:
        study.ask()
    assert pickle.loads(pickle.dumps(caught.value)).reason is StopReason.BUDGET
