"""The PRISM language: one module with one variable, the number of the state. PRISM and Storm read it."""

from .model import Model
from .numbers import written

__all__ = ["text"]


def text(model: Model) -> str:
    """The model as a program."""
    lines = ["dtmc", "", "module chain", f"  s : [0..{model.size - 1}];"]
    if model.note:
        lines.insert(0, f"// {model.note}")
    for x in range(model.size):
        updates = (f"{written(low, high, exact=model.exact)}:(s'={y})" for y, low, high in model.row(x))
        lines.append(f"  [] s={x} -> {' + '.join(updates)};")
    start = "|".join(f"s={x}" for x in model.initial) if len(model.initial) < model.size else "true"
    lines += ["endmodule", "", f"init {start} endinit", ""]
    lines += [f'label "{label}" = s={x};' for x, label in enumerate(model.labels)]
    return "\n".join(lines) + "\n"
