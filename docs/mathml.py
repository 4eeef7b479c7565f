"""Formulas as MathML, made when the documentation is built: pages need no script and no network to show them.

docutils converts TeX to MathML and raises an error for a command that it does not know. It reads some TeX differently
from TeX itself, so ``normalised`` writes each formula in the form that both read in the same way. Browsers do not break
a line inside a formula. So a long formula in running text becomes several formulas, one after each relation.
"""

import re
import xml.etree.ElementTree as ElementTree
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import accents, functions, over, tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

#: Command → how many arguments it takes.
_ARGUMENTS = dict.fromkeys([*accents, *over, "sqrt", "text", "mathrm", "mathbb", "mathbf", "mathsf", "mathcal"], 1) | {
    "frac": 2,
    "tfrac": 2,
    "dfrac": 2,
    "binom": 2,
    "operatorname": 1,
}
_NAMES = frozenset([*functions, "max", "min", "sup", "inf", "lim", "limsup", "liminf", "det"])
_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:,\d{3})*(?:\.\d+)?|.", re.S)
_OPENING = ("(", "[", "|", r"\{", r"\lVert", r"\lvert", r"\lceil", r"\lfloor", r"\bigl", r"\Bigl", r"\left", r"\biggl")
_NO_SPACE_BEFORE = (*_OPENING, ")", "]", r"\}", r"\rVert", r"\rceil", r"\rfloor", "}", ",", r"\,", "&", "=", "+", "-")
#: A line of text may break after these, outside parentheses, in a formula of more than _SHORT parts.
_BREAKS, _SHORT = frozenset("=≤≥<>≈→∝≠+−·,∈∼"), 9
_NAMESPACE = "http://www.w3.org/1998/Math/MathML"


def normalised(tex: str) -> str:
    """The formula with every argument and every script in braces, and with the spaces that TeX adds by itself."""
    tex = re.sub(r"(?<=\d),(?=\d)", "{,} ", tex)  # two numbers, as in (0,1)
    tex = re.sub(r"(?<=\d)\{,\}(?=\d)", ",", tex)  # one number, as in 1{,}000
    tex = re.sub(r"\\tag\{(.*?)\}", r"\\qquad(\1)", tex)
    return _Reader(tex).formula()


class _Reader:
    """The tokens of a formula, read from left to right."""

    def __init__(self, tex: str) -> None:
        self.tokens = [r"\ldots" if token == r"\dots" else token for token in _TOKEN.findall(tex)]
        self.place = 0

    def next(self) -> str | None:
        """The next token that is not a space, which is left in place; None at the end."""
        while self.place < len(self.tokens) and self.tokens[self.place].isspace():
            self.place += 1
        return self.tokens[self.place] if self.place < len(self.tokens) else None

    def formula(self) -> str:
        """Everything up to the end, or up to the brace that closes this group."""
        written: list[str] = []
        while (token := self.next()) is not None and token != "}":
            if token.strip("\\") in _NAMES:
                if written and _is_operand(written[-1]):
                    written.append(r"\,")
                written.append(self.atom())
                following = self.next()
                if following is not None and following not in _NO_SPACE_BEFORE:
                    written.append(r"\,")
            else:
                written.append(self.atom())
        return " ".join(written)

    def atom(self) -> str:
        """A token with its arguments, its primes and its scripts."""
        token = self.next()
        assert token is not None
        found = self.unit()
        if token in ("^", "_"):
            return f"{{}}{token}{self.argument()}"
        scripts: dict[str, str] = {}
        while (mark := self.next()) in ("^", "_", "'"):
            self.place += 1
            if mark == "'":
                scripts["^"] = scripts.get("^", "") + r"\prime "
            else:
                scripts[mark] = scripts.get(mark, "") + self.argument()[1:-1]
        # docutils puts a subscript that follows an accent below it: a superscript must come first, or an empty one.
        if token.strip("\\") in {*accents, *over} and scripts:
            scripts.setdefault("^", "")
        return found + "".join(f"{mark}{{{scripts[mark]}}}" for mark in ("^", "_") if mark in scripts)

    def unit(self, single: bool = False) -> str:
        """One token with its arguments, or one group; a ``single`` digit of a number."""
        token = self.next()
        if token is None:
            raise MathError("a formula ends where an argument is expected")
        self.place += 1
        if single and len(token) > 1 and token[0].isdigit():  # TeX takes one digit
            self.tokens[self.place - 1 : self.place] = [token[0], token[1:]]
            return token[0]
        if token == "{":
            inner = self.formula()
            if self.next() != "}":
                raise MathError("a group has no closing brace")
            self.place += 1
            return f"{{{inner}}}"
        name = token.strip("\\")
        if name in ("text", "mathrm", "operatorname"):  # spaces count in a text, and letters are one word
            return token + self.verbatim()
        return token + "".join(self.argument() for _ in range(_ARGUMENTS.get(name, 0)))

    def argument(self) -> str:
        """The next unit in braces."""
        found = self.unit(single=True)
        return found if found.startswith("{") else f"{{{found}}}"

    def verbatim(self) -> str:
        """The next group as it is."""
        if self.next() != "{":
            return self.argument()
        first, depth = self.place, 0
        while self.place < len(self.tokens):
            depth += {"{": 1, "}": -1}.get(self.tokens[self.place], 0)
            self.place += 1
            if depth == 0:
                return "".join(self.tokens[first : self.place])
        raise MathError("a text has no closing brace")


#: TeX adds no space between one of these and the name of a function.
_NOT_OPERANDS = re.compile(
    r"\\(?:[,;:! ]|q?quad|le|ge|in|to|cdot|sim|propto|approx|times|pm|mid|ne|[bB]igg?l.*|left.*|[A-Za-z]*arrow)"
)


def _is_operand(written: str) -> bool:
    """Whether TeX sets a thin space between this and the name of a function."""
    return bool(re.search(r"[\w}!)\]]$", written)) and not _NOT_OPERANDS.fullmatch(written)


def mathml(tex: str, block: bool) -> str:
    """The formula as one or more ``math`` elements. Raises ``MathError`` if docutils cannot convert it."""
    text = tex2mathml(normalised(tex), as_block=block)
    ElementTree.register_namespace("", _NAMESPACE)
    root = ElementTree.fromstring(text.replace("&ApplyFunction;", "\u2061"))
    for element in root.iter():
        element.text = (element.text or "").strip("\n ") if len(element) else element.text
        element.tail = None
        _space(element)
    parts = [root] if block else _broken(root)
    return "<wbr>".join(ElementTree.tostring(part, encoding="unicode") for part in parts)


def _space(element: Any) -> None:
    """Gives an operator the spaces and the size that TeX gives it."""
    text = element.text or ""
    if element.tag.endswith("}mo") and (text == "/" or text.isalpha()):  # names have the thin spaces of ``formula``
        element.set("lspace", "0")
        element.set("rspace", "0")
    if element.tag.endswith("}mo") and text and text in "‖|⌈⌉⌊⌋{}" and element.get("minsize") is None:
        element.set("stretchy", "false")


def _broken(root: Any) -> list[Any]:
    """A formula of running text as parts, each of which ends with a relation, an operator or a comma."""
    if len(root) <= _SHORT:
        return [root]
    parts, depth = [ElementTree.Element(root.tag)], 0
    children = list(root)
    for place, child in enumerate(children):
        parts[-1].append(child)
        last = child[0] if len(child) else child  # a parenthesis may have an exponent
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(last.text or "", 0)
        inside = depth == 0 and 0 < place < len(children) - 1
        if inside and child.tag.endswith("}mo") and child.text in _BREAKS and child.get("form") != "prefix":
            child.set("form", "infix")  # at the end of a formula it would be a postfix, which has other spaces
            parts.append(ElementTree.Element(root.tag))
    return parts


def _show(writer: Any, node: Any, block: bool) -> None:
    try:
        formula = mathml(node.astext(), block)
    except (MathError, ElementTree.ParseError) as error:
        logging.getLogger(__name__).warning("the formula %r cannot be shown: %s", node.astext(), error, location=node)
        formula = writer.encode(node.astext())
    if block:
        writer.body.append(f'<div class="math">{formula}</div>\n')
    else:
        writer.body.append(f'<span class="math">{formula}</span>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Sphinx calls this: the renderer's name for ``html_math_renderer`` is 'mathml'."""
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(lambda writer, node: _show(writer, node, block=False), None),
        block_renderers=(lambda writer, node: _show(writer, node, block=True), None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
