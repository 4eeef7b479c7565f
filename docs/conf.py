"""Sphinx configuration: MyST pages, the API from docstrings. Nothing is fetched while building.

Formulas are drawn by MathJax, which a reader's browser loads from its public address. Without a network the pages show
the formulas' TeX. To serve a copy of your own: ``sphinx -D mathjax_path=/mathjax/tex-mml-chtml.js …``.
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

# Before anything is imported that uses them: annotations then read ArrayLike and Array, as in the sources, and not as
# the unions and generics that numpy makes of the two names.
Array, IntegerArray = NewType("Array", object), NewType("IntegerArray", object)


class NDArray:
    def __class_getitem__(cls, kind: type) -> Any:
        return Array if kind is np.float64 else IntegerArray


npt.ArrayLike, npt.NDArray = NewType("ArrayLike", object), NDArray

project = "chainscout"
author = "The chainscout developers"
copyright = author
version = release = __version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.mathjax"]
exclude_patterns = ["_build", "_generated"]
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath", "amsmath"]
smartquotes = False  # a prime in a formula is not a quotation mark

# Names of this package must resolve. Others have no inventory here: reading one would need a network.
nitpicky = True
# The store and what begins with an underscore are not for users, but signatures name their types.
nitpick_ignore_regex = [("py:.*", r"(?!chainscout).*"), ("py:.*", r"chainscout\.store\..*|chainscout\..*\._.*")]

html_theme = "furo"
html_title = f"chainscout {__version__}"
html_copy_source = False

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"


sys.path.insert(0, str(Path(__file__).resolve().parent))
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
