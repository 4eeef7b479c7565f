"""The commands of a study: each looks at the state, and returns the entries that it wants and what the caller gets.

A command is a pure function. It raises an error, or returns drafts and a result; it changes nothing. The same state and
the same arguments give the same drafts, because a command runs again when another writer was faster.
"""

from . import tells
from .changes import (
    aim,
    bound,
    check,
    close,
    extend,
    go_on,
    lose,
    renew_rule,
    repeat,
    set_aside,
    take_up,
)
from .choices import ask, ask_many
from .creation import AIMS, create
from .leases import Granted, give_back, give_back_all, give_up_gone, lease, renew, tell_and_lease
from .replies import answer, look, waited_in_vain
from .tells import Told, checked_pairs, correct, end_path, expire, tell, tell_leased, tell_many, tell_walk

__all__ = [
    "AIMS", "Granted", "Told", "aim", "answer", "ask", "ask_many", "bound", "check", "checked_pairs", "close",
    "correct", "create", "end_path", "expire", "extend", "give_back", "give_back_all", "give_up_gone", "go_on", "lease",
    "look", "lose", "renew", "renew_rule", "repeat", "set_aside", "take_up", "tell", "tell_and_lease",
    "tell_leased", "tell_many", "tell_walk", "tells", "waited_in_vain",
]  # fmt: skip
