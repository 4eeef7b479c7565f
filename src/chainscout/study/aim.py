"""What a study is for: how far each chain is from it, when its bound is looked at next, and which chains are done.

A chain's ratio says how far it is, in units of transitions (MATH §16). The ratios are an input of the fold: somebody
computes a bound when a look is due, and appends it. So all processes agree who is furthest and who is done. A chain
whose ratio is at most 1 is done. It is never advanced again, and the cut where it was reached stays known.
"""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..journal.entry import Entry, unpacked
from .chain import Chain
from .draws import Cut
from .questions import Asked

if TYPE_CHECKING:
    from .state import State

__all__ = ["CALM", "FEW", "LONG", "MOST_CHECKED", "Aim", "contenders", "middle", "next_check"]

#: A study with at most this many chains has all its bounds looked at when it stops.
FEW = 100
#: The next look is due when T has grown by the root of the ratio, at least by _NEAR and at most by _FAR; or when the
#: ratio is expected to be 1, if that is sooner. But T grows at least by _LEAST.
_LEAST, _NEAR, _FAR = 1.001, 1.01, 2.0
#: Without an aim, bounds are looked at from T = LONG on, and then when T has grown by CALM.
CALM, LONG = 1.25, 100
#: The ratio of a question that is not answered well enough is more than 1, however close its answer is.
_ABOVE = math.nextafter(1.0, 2.0)
#: The checks of what bounds assume are made first at so many observations, or at so many a chain if that is more. Then
#: they are made when the observations have doubled; at the latest after so many more, or so many a chain.
_FIRST, _FIRST_OF_CHAIN = 1_024, 128
_PACE, _PACE_OF_CHAIN = 16_384, 256
#: The largest number of chains whose checks are made.
MOST_CHECKED = 1_000


def next_check(observations: int, chains: int) -> float:
    """How many observations there are when the checks are due after this moment; infinite: they are never made."""
    if chains > MOST_CHECKED:
        return math.inf
    if observations == 0:
        return max(_FIRST, _FIRST_OF_CHAIN * chains)
    return observations + min(max(observations, _FIRST), max(_PACE, _PACE_OF_CHAIN * chains))


class Aim:
    """The part of a study's state that is about its aim. The methods that change it are parts of the fold."""

    def __init__(self) -> None:
        #: Kind of aim ('loss', 'width', 'limit', 'worst') → what is to be reached; empty: a budget or a deadline alone.
        self.targets: dict[str, Any] = {}
        #: The entry that said so; 0: the first one.
        self.number = 0
        #: How many chains have not reached it: of those that are sampled, and of those that are set aside.
        self.behind = 0
        self.missed = 0
        #: Whether the checks were made since the aim was reached. No study stops on bounds that do not hold.
        self.verified = False
        #: The chains whose bounds are to be looked at now.
        self.looks: set[int] = set()

    @property
    def is_about_bounds(self) -> bool:
        """Whether the study stops when bounds are small enough."""
        return bool(self.targets)

    @property
    def is_about_answers(self) -> bool:
        """Whether the study stops when its questions are answered."""
        return bool(self.targets.keys() & {"width", "limit", "worst"})

    def tally(self, chain: Chain, change: int) -> None:
        """Counts a chain that has not reached the aim, in or out."""
        if self.targets and not chain.done:
            if chain.aside is None:
                self.behind += change
                self.verified = self.verified and self.behind == 0
            else:
                self.missed += change

    def renew(self, state: "State", number: int, targets: dict[str, Any]) -> None:
        """Places every chain, because the aim is new. ``number``: the entry that says so.

        A chain is done already if it has one state, or if the aim is about answers and no question is about it. Only a
        harder aim takes 'done' back.
        """
        self.verified = False
        stays = targets.keys() == self.targets.keys() == {"loss"}
        self.targets, self.number = targets, number
        self.behind = self.missed = 0
        for asked in state.questions:
            asked.met = False
        loss = targets.get("loss")
        for chain in state.chains:
            target = 0.0 if loss is None else loss[chain.name] if isinstance(loss, dict) else loss
            keeps = stays and chain.done and target >= chain.target
            chain.target = target
            if not keeps:
                self._begin(state, chain, number)
            self.tally(chain, 1)

    def reopen(self, state: "State", chain: Chain, number: int) -> None:
        """A chain that was done is not done any more, because one of its observations was taken back."""
        self._begin(state, chain, number)
        self.tally(chain, 1)

    def _begin(self, state: "State", chain: Chain, number: int) -> None:
        """Forgets what was known of the aim before, and asks for a look at a chain that has moved."""
        for end in (chain.latched, chain.wanted):
            if end is not None:
                chain.draws.drop(end)
        chain.latched = chain.wanted = None
        chain.at_cut = (0, 0)
        self.looks.discard(chain.number)
        nothing_to_learn = "loss" in self.targets and chain.size == 1 and not chain.is_open
        chain.done = nothing_to_learn or (self.is_about_answers and not chain.questions)
        chain.ratio = 0.0 if chain.done else math.inf
        self._place(state, chain, 0, chain.transitions)
        if chain.due < math.inf and chain.transitions > self._unread(chain):
            chain.due = chain.transitions
            self.want(state, chain, number)

    def _unread(self, chain: Chain) -> int:
        """How many of the chain's transitions its bounds do not read: answers do not replay a warm start."""
        return chain.prior if self.is_about_answers else 0

    def _place(self, state: "State", chain: Chain, looked: int, transitions: int) -> None:
        """When the aim is expected to be reached, and when the next look is due.

        ``looked``: the T of the cut that was looked at. ``transitions``: the T that was told then.
        """
        self._expect(state, chain, looked)
        unread = self._unread(chain)
        own = transitions - unread
        if chain.done:
            chain.due = math.inf  # the cut where it was reached stays
        elif self.targets:
            growth = max(_LEAST, min(chain.ratio, max(_NEAR, min(math.sqrt(chain.ratio), _FAR))))
            chain.due = max(transitions + 1, unread + math.ceil(own * growth))
        else:
            own = own if chain.questions else max(own, int(LONG / CALM))
            chain.due = max(transitions + 1, unread + math.ceil(own * CALM))

    def _expect(self, state: "State", chain: Chain, looked: int) -> None:
        """When the aim is expected to be reached, from a look at this T."""
        unread = self._unread(chain)
        chain.looked = looked
        chain.enough = unread + chain.ratio * max(0, looked - unread) if chain.ratio < math.inf else math.inf
        if state.order is not None and state.order.rule.aiming:
            chain.sums = chain.enough, float(unread)
        state.moved(chain)

    def want(self, state: "State", chain: Chain, number: int) -> None:
        """A look is due: keeps the end of the cut to look at. ``number``: the entry that is folded now."""
        cut = state.chosen_cut(chain, number + 1)
        same = chain.at_cut == (cut.number, chain.transitions - sum(cut.without.values()))
        if same and not self.is_answered(chain):
            chain.due = max(chain.transitions + 1, math.ceil(chain.transitions * _NEAR))
            return  # what was told since the last look lies behind a hole
        chain.wanted = chain.draws.keep(cut)
        chain.wanted_at = chain.transitions
        self.looks.add(chain.number)

    def is_unverified(self, chains: int) -> bool:
        """Whether the aim is reached by bounds of which the checks have not been asked."""
        reached = bool(self.targets) and self.behind == 0 and self.missed < chains
        return reached and not self.verified and chains <= MOST_CHECKED

    def doubt(self, state: "State", chains: list[Chain]) -> None:
        """The checks have been made, and speak against these chains: their bounds do not reach the aim."""
        for chain in chains:
            if self.targets and (chain.latched is not None or not chain.done):
                self.tally(chain, -1)
                if chain.latched is not None:
                    chain.draws.drop(chain.latched)
                chain.latched, chain.done, chain.ratio = None, False, math.inf
                self.tally(chain, 1)
                self._place(state, chain, chain.looked, chain.transitions)
        self.verified = self.behind == 0 and state.checked_at == state.observations

    def bound(self, state: "State", entry: Entry) -> None:
        """A bound that somebody computed. The first one of a cut counts."""
        chain, given = state.chains[entry.chain], unpacked(entry.more)
        look = entry.value, given["transitions"]
        if entry.by != self.number or chain.done or chain.at_cut == look:
            return
        chain.at_cut = look
        ratio, bound, error, place = *map(given.get, ("ratio", "bound", "error")), chain.draws.find(entry.value)
        chain.bound = math.inf if bound is None else bound
        chain.error = math.inf if error is None else error
        chain.variability = chain.weight * chain.plug_in()
        if self.is_answered(chain):
            return  # the answers, which come with it, say how far the chain is
        cut = None if place is None else chain.draws.cut(place, entry.value)
        self._reach(state, chain, math.inf if ratio is None else ratio, cut)
        moment = chain.transitions
        if chain.wanted is not None and (chain.done or chain.wanted.number == entry.value):
            moment = chain.wanted_at
            self._seen(chain)
        self._place(state, chain, given["transitions"], moment)
        if chain.wanted is None and chain.transitions >= chain.due:
            self.want(state, chain, entry.number)

    def _reach(self, state: "State", chain: Chain, ratio: float, cut: Cut | None) -> None:
        """Gives a chain the ratio of a look. If it has reached the aim, it is done at this cut."""
        self.tally(chain, -1)
        chain.ratio = math.inf if state.spoilt or chain.name in state.doubts else ratio
        if self.targets and chain.ratio <= 1.0 and cut is not None:
            chain.done = True
            chain.latched = chain.draws.keep(cut)
        self.tally(chain, 1)

    def _seen(self, chain: Chain) -> None:
        """The look that was due has been made, or is not needed any more."""
        if chain.wanted is not None:
            chain.draws.drop(chain.wanted)
            chain.wanted = None
            self.looks.discard(chain.number)

    # -- answers

    def is_answered(self, chain: Chain) -> bool:
        """Whether a look at a chain is one at its answers, and not at the bound of its loss."""
        return bool(chain.questions) and "loss" not in self.targets

    def answered(self, state: "State", chain: Chain, number: int) -> None:
        """The answers to all questions of a chain are those of one look. ``number``: the entry that is folded now."""
        if not self.is_answered(chain) or chain.done:
            return
        if "worst" in self.targets:
            left = [asked for asked in state.questions if not asked.met]
            among = contenders(left, self.targets["worst"])
            for asked in left:
                asked.met = asked not in among
            others = [state.chains[asked.chain] for asked in state.questions if asked.chain != chain.number]
            for other in others:  # what stands for the limit may be another one
                if other.looked and not other.done:
                    self._answer(state, other, number)
                    self._expect(state, other, other.looked)
        else:
            for asked in chain.questions:
                asked.met = self.is_met(asked, asked.lower, asked.upper)
        told = chain.questions[0].transitions
        self._answer(state, chain, number)
        self._seen(chain)
        self._place(state, chain, told, told)
        if chain.transitions >= chain.due:
            self.want(state, chain, number)

    def _answer(self, state: "State", chain: Chain, number: int) -> None:
        """Gives a chain the ratio of its answers."""
        if not self.targets:
            return
        ratio = max(self._ratio(state, asked) for asked in chain.questions)
        if "worst" in self.targets and self.unmet(state) == 0:
            ratio = min(ratio, 1.0)  # which chain is the worst is known
        cut = None
        if ratio <= 1.0:
            end = chain.wanted
            cut = (
                state.chosen_cut(chain, number)
                if end is None
                else chain.draws.cut(chain.draws.holes.index(end), number)
            )
        self._reach(state, chain, ratio, cut)
        if chain.done:
            chain.due = math.inf
            self._seen(chain)

    def is_met(self, asked: Asked, lower: float, upper: float) -> bool:
        """Whether these ends answer the question well enough. Which chain is the worst depends on all answers."""
        if "width" in self.targets:
            return upper < math.inf and bool(upper - lower <= self.targets["width"])
        limit = self.targets.get("limit")
        return asked.met if limit is None else upper < limit or lower >= limit

    def _ratio(self, state: "State", asked: Asked) -> float:
        """How far an answer is from the aim: the squared ratio of a width.

        For a decision, the width is the distance from the estimate to the end that must not reach the limit.
        """
        if "width" in self.targets:
            part: float = asked.width / self.targets["width"]
        else:
            limit = (
                self.targets["limit"]
                if "limit" in self.targets
                else middle((one.estimate for one in state.questions), self.targets["worst"])
            )
            guess = asked.estimate
            if limit is None or guess is None or guess == limit or math.isinf(guess):
                part = math.inf
            else:
                part = ((asked.upper if guess < limit else asked.lower) - guess) / (limit - guess)
        return min(part * part, 1.0) if asked.met else max(part * part, _ABOVE)

    def unmet(self, state: "State") -> int:
        """How many questions are not answered well enough."""
        left = sum(not asked.met for asked in state.questions)
        return left - ("worst" in self.targets)


def contenders(questions: Sequence[Asked], worst: str) -> list[Asked]:
    """The questions whose answers may be the worst: no other answer is known to be worse."""
    if worst == "highest":
        limit = max(asked.lower for asked in questions)
        return [asked for asked in questions if asked.upper >= limit]
    limit = min(asked.upper for asked in questions)
    return [asked for asked in questions if asked.lower <= limit]


def middle(estimates: Iterable[float | None], worst: str) -> float | None:
    """The middle between the worst estimate and the next one; None before there are two of them."""
    known = sorted((one for one in estimates if one is not None), reverse=worst == "highest")
    return (known[0] + known[1]) / 2 if len(known) > 1 else None
