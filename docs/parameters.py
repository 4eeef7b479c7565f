"""The parameters of every public function, one by one, from its docstring or from a common glossary.

A docstring describes what is special about a parameter, as in '``where``: a path, an address, or None'. A common
meaning stands once, in ``parameters.toml``: under the parameter's name, or under 'function.parameter' if one function
gives it another meaning.
"""

import dataclasses
import inspect
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

GLOSSARY: dict[str, str] = tomllib.loads(Path(__file__).with_name("parameters.toml").read_text(encoding="utf-8"))
_SAID = re.compile(r"(?:^|(?<= ))((?:``\w+``, )*``\w+``): ")


def parameters(function: Callable[..., Any]) -> list[str]:
    """The names of a function's parameters."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    open_ended = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one.name for one in found if one.name not in ("self", "cls") and one.kind not in open_ended]


def split(lines: list[str], names: list[str]) -> tuple[list[str], dict[str, str]]:
    """A docstring's lines without its descriptions of parameters, and these descriptions by parameter."""
    kept: list[str] = []
    said: dict[str, str] = {}
    for paragraph in "\n".join(lines).split("\n\n"):
        text = " ".join(line.strip() for line in paragraph.splitlines())
        found = [one for one in _SAID.finditer(text) if set(re.findall(r"\w+", one[1])) <= set(names)]
        if not found:
            kept += [*paragraph.splitlines(), ""]
            continue
        if before := text[: found[0].start()].strip():
            kept += [before, ""]
        ends = [*(one.start() for one in found[1:]), len(text)]
        for one, end in zip(found, ends, strict=True):
            for name in re.findall(r"\w+", one[1]):
                said[name] = text[one.end() : end].strip()
    return kept, said


def described(label: str, function: Callable[..., Any], doc: str) -> dict[str, str]:
    """Parameter → its description; parameters without one are left out.

    ``label``: the function's dotted name from the public class or function on, as in 'Study.tell'.
    """
    names = parameters(function)
    _, said = split(doc.splitlines(), names)
    known = {name: said.get(name) or GLOSSARY.get(f"{label}.{name}") or GLOSSARY.get(name) for name in names}
    return {name: text for name, text in known.items() if text}


def public(thing: Any, label: str) -> Iterator[tuple[str, Callable[..., Any], str]]:
    """A function, or a class and its methods: label, function and docstring of each."""
    if inspect.isfunction(thing):
        yield label, thing, inspect.getdoc(thing) or ""
    if not inspect.isclass(thing) or issubclass(thing, Exception):
        return
    if not dataclasses.is_dataclass(thing) and not hasattr(thing, "_fields"):  # their fields say what they mean
        own = vars(thing).get("__init__")
        yield label, thing, f"{inspect.getdoc(thing) or ''}\n\n{(inspect.getdoc(own) or '') if own else ''}"
    for name, value in vars(thing).items():
        function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        if not name.startswith("_") and inspect.isfunction(function):
            yield f"{label}.{name}", function, inspect.getdoc(function) or ""


def list_parameters(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Sphinx calls this with each docstring. It moves the descriptions of parameters into a list."""
    if what not in ("function", "method", "class") or not callable(thing):
        return
    if what == "class" and (dataclasses.is_dataclass(thing) or hasattr(thing, "_fields")):
        return
    label = ".".join(name.split(".")[-2 if what == "method" else -1 :])
    kept, _ = split(lines, parameters(thing))
    found = described(label, thing, "\n".join(lines))
    lines[:] = [*kept, *(f":param {key}: {value}" for key, value in found.items()), ""]
