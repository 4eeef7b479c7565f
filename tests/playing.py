"""The contract of a policy (policies/policy.py), played on given paths one observation at a time, from nothing but it.

Neither the engine nor a live study is used: this is the third opinion that both are compared with.
"""

import math

from chainscout.policies import settings
from chainscout.policies.policy import replaced


class Player:
    """One chain under a policy: its counts and the running sums."""

    def __init__(self, policy, setting, weight=1.0):
        self.policy, self.size, self.weight = policy, setting.size, weight
        self.constants = policy.prepare(setting)
        self.rows = [[0.0] * self.size for _ in range(self.size)]
        self.terms = [(0.0,) * policy.width(self.size, self.constants) for _ in range(self.size)]
        self.sums = self.terms[0]
        self.state, self.transitions, self.changed = None, 0, set()
        self.index = math.inf

    def observe(self, state):
        if self.state is not None:
            self.rows[self.state][state] += 1.0
            self.transitions += 1
            self.changed.add(self.state)
        self.state = state

    def learn(self):
        """The rows that were left since the last look, in the order of the states; then the index."""
        if self.transitions == 0:
            return
        exits = [sum(row) for row in self.rows]
        squares = [sum(count * count for count in row) for row in self.rows]
        if self.policy.summary is not None:
            size = self.size
            scratch = [0.0] * (2 * size), [0] * (2 * size)
            self.sums = self.policy.summary(exits, squares, size, self.constants, *scratch)
        else:
            for x in sorted(self.changed):
                new = self.policy.row_terms(self.rows[x], self.size, exits[x], squares[x], self.constants)
                self.sums = tuple(map(replaced, self.sums, self.terms[x], new))
                self.terms[x] = new
        self.changed = set()
        self.index = self.value()

    def value(self, pending=0):
        """The index with some observations pending."""
        return self.weight * self.policy.index(self.sums, float(self.transitions + pending), self.constants)


def play(policy, paths, sizes, budget, problem=None, weights=None, horizon=True):
    """→ the chain of every observation and the index that it was chosen for; ``paths`` are iterators of states."""
    known = budget if horizon else None
    policy = policy.facing(known)
    weights = [1.0] * len(sizes) if weights is None else [policy.factor(w) for w in weights]
    players = [Player(policy, s, w) for s, w in zip(settings(sizes, known, problem), weights, strict=True)]
    paths, choices, values = [iter(path) for path in paths], [], []
    while len(choices) < budget:
        k = max(range(len(players)), key=lambda j: (players[j].index, -j))
        if policy.floor is not None:
            behind = min(range(len(players)), key=lambda j: (players[j].transitions, j))
            if players[behind].transitions < policy.floor(float(len(choices))):
                k = behind
        for _ in range(max(1, int(policy.block * players[k].transitions))):
            choices.append(k)
            values.append(players[k].index)
            players[k].observe(next(paths[k]))
        players[k].learn()
    return choices[:budget], values[:budget]
