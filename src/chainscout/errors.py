"""Every error that chainscout raises on purpose: one sentence that says what was expected and what was given."""

from typing import Any

from .installation import extra_command


class ChainscoutError(Exception):
    """Base class of all errors raised on purpose; the command line prints its text and no traceback."""

    #: The command line's exit status: 1 for a failure, 2 for a wrong use.
    exit_status = 1


class InputError(ChainscoutError, ValueError):
    """An argument is invalid. Nothing was changed."""

    exit_status = 2


class OutOfStep(InputError):
    """An observation is neither the chain's next one nor a repetition of what was told under its number."""


class UnknownChain(InputError):
    """The study has no such chain."""


class OverBudget(InputError):
    """An observation costs more than the rest of the budget. Nothing was changed."""


class Held(InputError):
    """A caller without the lease's token tried to change a leased chain. Nothing was changed."""


class NotErgodicError(InputError):
    """The chain lacks the requested quantity because it is not irreducible, not aperiodic or not reversible."""

    exit_status = 1


class FileError(ChainscoutError):
    """A file is missing, damaged, or has unusable content. The text lists every problem that was found."""


class LogError(ChainscoutError):
    """A log cannot be read to its end, or has content that cannot be counted. No counts were made."""


class StudyFinished(ChainscoutError):
    """The study has ended: its budget is used, its target is certified, or its deadline has passed."""

    def __init__(self, text: str, reason: str) -> None:
        super().__init__(text)
        #: A ``chainscout.study.StopReason``.
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.reason)  # pickling, so that the error can reach another process


class LeaseLost(ChainscoutError):
    """The lease with this token no longer holds the chain: it expired or was given back. Nothing was changed."""


class NothingFree(ChainscoutError):
    """Workers hold every chain, or the rest of the budget is promised to them."""


class Busy(ChainscoutError):
    """Another writer held the study for longer than this one may wait. Nothing was changed."""


class ConnectionLost(ChainscoutError):
    """The connection to the database was lost. Uncommitted changes were not stored."""


class Cancelled(ChainscoutError):
    """The database cancelled a statement: it took too long, or somebody ended it. Nothing was changed."""


class OutcomeUnknown(ConnectionLost):
    """The connection to the database was lost during a commit. It is not known whether the change was stored."""


class SourceError(ChainscoutError):
    """A source gave no valid state: it died, was too slow, or gave an invalid state."""


class SourceNotStarted(SourceError):
    """A source could not be started, so it made no observation."""


class SourceEnded(ChainscoutError):
    """A source has no more states to give."""


class MissingExtraError(ChainscoutError, ImportError):
    """A required optional dependency is not installed."""

    exit_status = 2

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(f"{what} needs an optional dependency: {extra_command(extra)}")
        self._given = what, extra

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._given


class RecomputedWarning(UserWarning):
    """A built-in rule has changed since the study was last open, and the study's indices were computed again."""


class BarePathsWarning(UserWarning):
    """Several paths of a chain in a row brought no transition, because the study was reopened for each of them."""


class RepeatedPathsWarning(UserWarning):
    """Two paths of a study repeat each other, so no bound holds."""


class SetAsideWarning(UserWarning):
    """``learn`` set a chain aside: the chain is not sampled any more."""


class MixedUnitsWarning(UserWarning):
    """A study has one target width for answers in different units."""


class PolicyWarning(UserWarning):
    """A study's policy does not look at what the study is for."""


class UndeclaredStatesWarning(UserWarning):
    """A study with a target loss has chains whose states were not declared: they need more observations."""


class RenormalisedWarning(UserWarning):
    """A table's rows did not sum to one. They were divided by their sums, as requested."""


class CorrelatedCountsWarning(UserWarning):
    """Transitions were counted with a sliding lag: they overlap, and no certificate holds for them."""
