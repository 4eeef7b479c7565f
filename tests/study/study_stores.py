"""A study with a few observations, at any place."""

from study_rules import RULE

from chainscout.study import Study

STATES = {"a": 2, "b": 3}


def filled(where, policy=RULE):
    study = Study.create(where, STATES, budget=100, policy=policy)
    study.tell_many([("a", 0), ("b", 2), ("a", 1), ("b", 0), ("a", 1)])
    return study
