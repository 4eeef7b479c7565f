"""Every error that chainscout raises on purpose: one sentence that says what was expected and what was given."""

from typing import Any

from .installation import extra_command


class ChainscoutError(Exception):
    """Base class of all errors raised on purpose; the command line prints its text and no traceback."""

    #: The command line's exit status: 1 for a failure, 2 for a wrong use.
    exit_status = 1


class InputError(ChainscoutError, ValueError):
    """An argument is not what the function takes; nothing was changed."""

    exit_status = 2


class OutOfStep(InputError):
    """An observation that is neither the next one of its chain nor what was told under its number before."""


class OverBudget(InputError):
    """An observation costs more than is left of the budget; nothing was changed."""


class Held(InputError):
    """A chain was to be changed without the token of the lease that holds it; nothing was changed."""


class NotErgodicError(InputError):
    """A quantity was asked for that this chain does not have because it is not irreducible, aperiodic or reversible."""

    exit_status = 1


class FileError(ChainscoutError):
    """A file is missing, damaged, or says something that cannot be used. The text lists every problem found in it."""


class LogError(ChainscoutError):
    """A log cannot be read to its end, or says something that cannot be counted. No counts were made."""


class StudyFinished(ChainscoutError):
    """There is nothing more to ask: the study's budget is used, its target is certified or its deadline has passed."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        #: A ``chainscout.study.StopReason``.
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.reason)  # to reach another process


class LeaseLost(ChainscoutError):
    """The chain is not held under this token: the lease expired or was given up, and nothing was changed."""


class NothingFree(ChainscoutError):
    """Every chain is held by a worker, or what is left of the budget is promised to them."""


class Busy(ChainscoutError):
    """Another writer held the study for longer than this one may wait; nothing was changed."""


class ConnectionLost(ChainscoutError):
    """The database went away. What had not been committed was not stored."""


class OutcomeUnknown(ConnectionLost):
    """The database went away during a commit: whether the change was stored is not known."""


class SourceError(ChainscoutError):
    """A source did not give a state: it died, was too slow, or gave what is no state."""


class SourceNotStarted(SourceError):
    """A source could not be started, so it made no observation."""


class SourceEnded(ChainscoutError):
    """A source has no more states to give."""


class MissingExtraError(ChainscoutError, ImportError):
    """An optional dependency is needed and not installed."""

    exit_status = 2

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency: {extra_command(extra)}")
        self._given = what, extra

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given


class RecomputedWarning(UserWarning):
    """A built-in rule has changed since the study was last open, and the study's indices were computed anew."""


class BarePathsWarning(UserWarning):
    """Paths of a chain brought no transition one after the other, because the study was opened for each of them."""


class RepeatedPathsWarning(UserWarning):
    """Two paths of a study repeat each other, so that no bound holds."""


class SetAsideWarning(UserWarning):
    """A chain was set aside while its source was learned: it is sampled no more."""


class RenormalisedWarning(UserWarning):
    """A published table's rows did not sum to one and were divided by their sums, as was asked for."""


class CorrelatedCountsWarning(UserWarning):
    """Transitions were counted with a sliding lag: they overlap, and no certificate holds for them."""
