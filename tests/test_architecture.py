"""The shape of the package: imports point downwards, files are small, and importing it costs nothing."""

import ast
import subprocess
import sys
from importlib.util import resolve_name
from pathlib import Path

import pytest

import chainscout

PACKAGE = Path(chainscout.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

#: From the bottom to the top. A file imports only from layers below its own; files of one folder import each other.
LAYERS = [
    {"_version", "installation"},
    {"errors"},
    {"validation"},
    {"numerals"},
    {"specs", "rows", "frames", "logarithm", "markup"},
    {"random", "compile"},
    {"chains", "counts"},
    {"formats"},
    {"problems", "paths"},
    {"losses", "predictions", "guarantees"},
    {"certificates"},
    {"diagnostics"},
    {"answers"},
    {"policies", "logs", "sources", "journal"},
    {"engine", "study"},
    {"experiment", "learning"},
    {"report"},
    {"dashboard"},
    {"cli"},
    {"__main__"},
]
HEIGHT = {name: height for height, layer in enumerate(LAYERS) for name in layer}


def shown(path):
    return str(path.relative_to(path.parents[2]))


def place(path):
    """The dotted name of a file, and the layer's module or folder that it belongs to ('' for the package itself)."""
    parts = ["chainscout", *path.relative_to(PACKAGE).with_suffix("").parts]
    parts = parts[:-1] if parts[-1] == "__init__" else parts
    return ".".join(parts), parts[1] if len(parts) > 1 else ""


def imported_modules(source, module, is_package):
    """Every dotted name that a file imports, at its top, inside functions and for type checkers alike."""
    package = module if is_package else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = resolve_name("." * node.level + (node.module or ""), package)
            # 'from . import report' names a module, 'from .report import plan' something in one.
            yield from (f"{base}.{alias.name}" for alias in node.names)


def layers_used(path):
    module, _ = place(path)
    for name in imported_modules(path.read_text(encoding="utf-8"), module, path.name == "__init__.py"):
        parts = name.split(".")
        if parts[0] == "chainscout":
            yield parts[1]


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_imports_point_downwards(path):
    _, own = place(path)
    if own == "":  # the package's own names, imported when they are used
        return
    assert own in HEIGHT, f"{own} has no place in LAYERS"
    for used in layers_used(path):
        assert used == own or HEIGHT[used] < HEIGHT[own], f"{shown(path)} imports {used}, which is not below it"


def test_the_import_test_sees_every_kind_of_import():
    source = """
import chainscout.cli
from . import report
from ..errors import InputError
if TYPE_CHECKING:
    from chainscout.problems import Problem
def function():
    from .. import counts
"""
    assert set(imported_modules(source, "chainscout.chains.chain", is_package=False)) == {
        "chainscout.cli",
        "chainscout.chains.report",
        "chainscout.errors.InputError",
        "chainscout.problems.Problem",
        "chainscout.counts",
    }


def test_every_layer_exists():
    assert {own for _, own in map(place, FILES) if own} == set(HEIGHT)


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_files_are_about_one_thing(path):
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 700
    assert ast.get_docstring(ast.parse(source))


#: Layers whose modules say what others may import. The rest follow as they are rebuilt.
MARKED = ("formats", "journal", "logs", "study", "learning", "sources", "paths", "answers", "diagnostics")


def public_names(path):
    """What a module lists in ``__all__``; None if it lists nothing."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]:
            return ast.literal_eval(node.value)
    return None


def is_private(path):
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return any(part.startswith("_") and part != "__init__" for part in parts)


@pytest.mark.parametrize("path", [path for path in FILES if place(path)[1] in MARKED], ids=shown)
def test_a_module_is_private_or_says_what_is_public(path):
    names = public_names(path)
    assert is_private(path) or names is not None, "a public module needs an __all__, a private one an underscore"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    assigned = [t for node in tree.body if isinstance(node, ast.Assign) for t in node.targets]
    defined |= {part.id for target in assigned for part in ast.walk(target) if isinstance(part, ast.Name)}
    defined |= {node.target.id for node in tree.body if isinstance(node, ast.AnnAssign)}
    own = set(defined)
    defined |= {a.asname or a.name for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names}
    assert set(names or ()) <= defined
    if not is_private(path):
        others = {name for name in own - set(names or ()) if not name.startswith("_")}
        assert not others, "a public module's other names begin with an underscore"


@pytest.mark.parametrize("path", FILES, ids=shown)
def test_layers_import_only_what_is_public_in_another(path):
    module, own = place(path)
    for name in imported_modules(path.read_text(encoding="utf-8"), module, path.name == "__init__.py"):
        parts = name.split(".")
        if parts[0] != "chainscout" or len(parts) < 3 or parts[1] == own or parts[1] not in MARKED:
            continue
        assert not any(part.startswith("_") for part in parts), f"{name} is private"
        home = PACKAGE.joinpath(*parts[1:-1])
        names = public_names(home / "__init__.py" if home.is_dir() else home.with_suffix(".py"))
        is_module = home.joinpath(parts[-1]).with_suffix(".py").exists() or home.joinpath(parts[-1]).is_dir()
        assert is_module or parts[-1] in names, f"{name} is not in __all__ of its module"


def test_no_two_modules_of_these_layers_share_a_name():
    names = [path.stem for path in FILES if place(path)[1] in MARKED and path.stem != "__init__"]
    assert len(names) == len(set(names))


def test_importing_the_package_imports_nothing_heavy():
    heavy = {"numpy", "scipy", "numba", "matplotlib", "pydantic"}
    code = f"import sys, chainscout; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", chainscout.__all__)
def test_every_public_name_is_there(name):
    assert getattr(chainscout, name) is not None
    assert name in dir(chainscout)


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="module 'chainscout' has no attribute 'nothing'"):
        _ = chainscout.nothing
