"""Storm's explicit format DRN: one line for each state with its labels, one line for each transition."""

from ..chains import MarkovChain
from .model import INITIAL, Model, chain_of, is_whole, refused
from .numbers import probability, written

__all__ = ["read", "text"]


def text(model: Model) -> str:
    """The model as DRN."""
    lines = [f"// {model.note}"] if model.note else []
    lines += ["@type: DTMC", f"@value_type: {'double' if model.exact else 'double-interval'}"]
    lines += ["@parameters", "", "@reward_models", "", "@nr_states", str(model.size)]
    lines += ["@nr_choices", str(model.size), "@model"]
    for x, label in enumerate(model.labels):
        lines.append(f"state {x} {f'{INITIAL} ' if x in model.initial else ''}{label}")
        lines.append("\taction 0")
        lines += [f"\t\t{y} : {written(low, high, exact=model.exact)}" for y, low, high in model.row(x)]
    return "\n".join(lines) + "\n"


def read(file: str, content: str) -> MarkovChain:
    """The chain of a DRN file."""
    lines = content.splitlines()
    header: dict[str, str] = {}
    begin = 0
    for begin, line in enumerate(lines, 1):
        key, _, value = line.partition(":")
        if line.startswith("@"):
            # The value comes after a colon or on the next line.
            header[key.strip()] = value.strip() or (lines[begin].strip() if begin < len(lines) else "")
        if line.strip() == "@model":
            break
    if header.get("@type", "").upper() != "DTMC":
        raise refused(file, "", f"the type must be DTMC, a Markov chain, not {header.get('@type', '')!r}")
    if "@model" not in header or not is_whole(header.get("@nr_states", "")):
        raise refused(file, "", "a DRN file has the lines @nr_states and @model")
    size = int(header["@nr_states"])
    entries: dict[tuple[int, int], float] = {}
    labels: dict[str, set[int]] = {}
    current, actions = -1, 0

    def state(digits: str, place: str) -> int:
        if not is_whole(digits) or int(digits) >= size:
            raise refused(file, place, f"the states are numbered from 0 to {size - 1}, and this is {digits!r}")
        return int(digits)

    for number, line in enumerate(lines[begin:], begin + 1):
        place, words = f"line {number}", line.split()
        if not words or words[0].startswith("//"):
            continue
        if words[0] == "state" and len(words) > 1:
            current, actions = state(words[1], place), 0
            for label in words[2:]:
                if not label.startswith(("[", "{", "!")):  # rewards, observations, exit rates
                    labels.setdefault(label.strip('"'), set()).add(current)
        elif words[0] == "action":
            actions += 1
            if actions > 1:
                raise refused(file, place, f"the state {current} has two actions: this is no Markov chain")
        elif ":" in line and current >= 0:
            target, _, value = line.partition(":")
            pair = current, state(target.strip(), place)
            if pair in entries:
                raise refused(file, place, f"the transition {pair[0]} to {pair[1]} is there twice")
            entries[pair] = probability(value, file, place)
        else:
            raise refused(file, place, f"a line is a state, an action or a transition, not {line.strip()[:60]!r}")
    return chain_of(file, size, entries, labels, labels.get(INITIAL, set()))
