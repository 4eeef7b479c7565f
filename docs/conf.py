"""Sphinx configuration: MyST pages, and the API from docstrings. Nothing is fetched while building or reading.

Formulas become MathML when the pages are built (see ``mathml.py``). Current browsers draw it without a script.
"""

import re
import sys
from pathlib import Path
from typing import Any, NewType

import numpy as np
import numpy.typing as npt
from pygments.lexers.special import TextLexer
from sphinx.application import Sphinx

from chainscout import __version__

# This must come before any import that uses the two names. Annotations then show ArrayLike and Array, as the sources
# do, and not the unions and generics behind them.
Array, IntegerArray = NewType("Array", object), NewType("IntegerArray", object)


class NDArray:
    def __class_getitem__(cls, kind: type) -> Any:
        return Array if kind is np.float64 else IntegerArray


npt.ArrayLike, npt.NDArray = NewType("ArrayLike", object), NDArray

project = "chainscout"
author = "The chainscout developers"
copyright = author
version = release = __version__

sys.path.insert(0, str(Path(__file__).resolve().parent))  # for the modules of this folder

extensions = ["myst_parser", "sphinx.ext.autodoc", "mathml"]
html_math_renderer = "mathml"
exclude_patterns = ["_build", "_generated"]
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
smartquotes = False  # a prime in a formula is not a quotation mark

# Names of this package must resolve. Other names are not checked, because their inventories need a network.
nitpicky = True
# What a study is made of inside, and names with an underscore, are not for users, but signatures name their types.
_INSIDE = r"chainscout\.study\.(keeper|commands|bounds)\..*|chainscout\.study\.look\.Shares|chainscout\..*\._.*"
nitpick_ignore_regex = [("py:.*", r"(?!chainscout).*"), ("py:.*", _INSIDE)]

html_theme = "furo"
html_title = f"chainscout {__version__}"
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["formulas.css", "gallery.css"]

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"

from parameters import list_parameters  # noqa: E402 - a module of this folder


def escape_formulas(app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are sentences with ``names``; a bar in them is an absolute value, not reStructuredText."""
    for place, line in enumerate(lines):
        parts = re.split(r"(``.*?``)", line)
        lines[place] = "".join(part if part.startswith("``") else part.replace("|", r"\|") for part in parts)


def setup(app: Sphinx) -> None:
    app.add_lexer("csv", TextLexer)
    app.connect("autodoc-process-docstring", list_parameters)
    app.connect("autodoc-process-docstring", escape_formulas)
