"""The API reference: every public name is in it, with its parameters one by one and an example that runs."""

import importlib
import importlib.util
import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import chainscout as cs

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "api.md").read_text(encoding="utf-8")
NAMES = [name for name in cs.__all__ if name != "__version__"]


def loaded() -> ModuleType:
    spec = importlib.util.spec_from_file_location("parameters", DOCS / "parameters.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


described = loaded()


def generated() -> list[Any]:
    """What the page's directives make entries of."""
    found = []
    for module, options in re.findall(r"^\.\. automodule:: (\S+)\n((?:   .*\n)*)", PAGE, re.M):
        members = re.search(r":members:(.*)", options)
        assert members is not None, module
        thing = importlib.import_module(module)
        named = [name.strip() for name in members[1].split(",") if name.strip()]
        public = getattr(thing, "__all__", [name for name in vars(thing) if not name.startswith("_")])
        found += [getattr(thing, name) for name in named or public]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_an_example_that_uses_it(name: str) -> None:
    """``tests/test_docs.py`` runs all of the page's blocks."""
    section = re.search(rf"^### cs\.{name}\n(.*?)^##", PAGE, re.M | re.S)
    assert section is not None
    assert re.search(r"\{py:\w+\}`chainscout\.", section[1])
    block = re.search(r"^```python\n(.*?)^```", section[1], re.M | re.S)
    assert block is not None
    assert re.search(rf"\bcs\.{name}\b", block[1])


def test_the_page_has_no_names_that_do_not_exist() -> None:
    assert sorted(re.findall(r"^### cs\.(\w+)", PAGE, re.M)) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_has_an_entry(name: str) -> None:
    thing = getattr(cs, name)
    if isinstance(thing, ModuleType):
        assert f".. automodule:: {thing.__name__}\n" in PAGE
    else:
        assert any(thing is entry for entry in generated())


def functions() -> list[Any]:
    found = {}
    for name in NAMES:
        thing = getattr(cs, name)
        things = {key: getattr(thing, key) for key in thing.__all__} if isinstance(thing, ModuleType) else {name: thing}
        for label, one in things.items():
            found |= {key: (key, function, doc) for key, function, doc in described.public(one, label)}
    return list(found.values())


@pytest.mark.parametrize("label", [label for label, _, _ in functions()])
def test_every_parameter_is_described(label: str) -> None:
    _, function, doc = next(one for one in functions() if one[0] == label)
    assert doc.strip(), "it has no docstring"
    known = described.described(label, function, doc)
    assert list(known) == described.parameters(function)
    assert all(text.strip() for text in known.values())


def test_a_parameter_that_nobody_describes_is_noticed() -> None:
    def new(where: str, whatever: int) -> None:
        """``where``: a place."""

    assert list(described.described("new", new, inspect.getdoc(new) or "")) == ["where"]


def test_a_docstring_is_split_into_its_parameters() -> None:
    lines = ["First line.", "", "``a``: one", "of two. ``b``, ``c``: both.", "", "``d`` is no parameter."]
    kept, said = described.split(lines, ["a", "b", "c"])
    assert said == {"a": "one of two.", "b": "both.", "c": "both."}
    assert [line for line in kept if line] == ["First line.", "``d`` is no parameter."]
