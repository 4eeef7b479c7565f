"""Formulas of the documentation: each becomes MathML that has the structure of its TeX, and pages need no script."""

import re
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

pytest.importorskip("sphinx")  # the documentation has requirements of its own
pytest.importorskip("myst_parser")

DOCS = Path(__file__).resolve().parent.parent / "docs"
sys.path.insert(0, str(DOCS))
import mathml  # noqa: E402 - a module of the documentation
from docutils.utils.math import MathError  # noqa: E402
from markdown_it import MarkdownIt  # noqa: E402
from mdit_py_plugins.dollarmath import dollarmath_plugin  # noqa: E402

PAGES = sorted(DOCS.rglob("*.md"))


def formulas(page: Path) -> list[tuple[str, bool]]:
    """The TeX of each formula, and whether it is displayed."""
    reader = MarkdownIt("commonmark").use(dollarmath_plugin).enable("table")
    tokens = [
        part for token in reader.parse(page.read_text(encoding="utf-8")) for part in (token, *(token.children or []))
    ]
    return [(token.content, token.type == "math_block") for token in tokens if token.type.startswith("math_")]


def linear(tex: str) -> str:
    """The structure of a formula in one line: a_[b]^[c] for scripts, a~[b] for accents, a/b for fractions."""

    def written(element: ElementTree.Element) -> str:
        tag, parts = element.tag.rpartition("}")[2], [written(child) for child in element]
        if tag in ("msub", "munder"):
            return f"{parts[0]}_[{parts[1]}]"
        if tag in ("msubsup", "munderover"):
            return f"{parts[0]}_[{parts[1]}]" + (f"^[{parts[2]}]" if parts[2] else "")
        if tag == "msup":
            return f"{parts[0]}^[{parts[1]}]"
        if tag == "mover":
            return f"{parts[0]}~[{parts[1]}]"
        if tag == "mfrac":
            return f"({parts[0]})/({parts[1]})"
        return "".join(parts) or ("" if tag == "mspace" else (element.text or "").strip("\u2061"))

    parts = mathml.mathml(tex, block=False).split("<wbr>")
    return "".join(written(ElementTree.fromstring(part)) for part in parts)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_every_formula_converts(page: Path) -> None:
    for tex, block in formulas(page):
        assert "merror" not in mathml.mathml(tex, block)


def test_the_pages_of_theory_have_formulas() -> None:
    """So that the test above cannot pass because nothing was found."""
    numbers = {page.stem: len(formulas(page)) for page in PAGES}
    assert all(numbers[page] > 20 for page in ("mathematics", "paper", "errata", "certificates", "policies", "answers"))


@pytest.mark.parametrize(
    ("tex", "expected"),
    [
        (r"\hat P_k", "P~[ˆ]_[k]"),  # the subscript is beside the letter, not below it
        (r"\hat\pi_k(x)^2", "π~[ˆ]_[k](x)^[2]"),
        (r"\bar p_y^2", "p~[ˉ]_[y]^[2]"),
        (r"\tfrac12\log 4", "(1)/(2)log4"),  # TeX takes one digit, not a number
        (r"\tfrac{S-1}2\log\tfrac54", "(S−1)/(2)log(5)/(4)"),
        (r"x^23", "x^[2]3"),
        (r"10^{-15}", "10^[−15]"),
        (r"L''_n", "L_[n]^[′′]"),
        (r"\max_k L_k", "max_[k]L_[k]"),
        (r"1{,}000", "1,000"),
        (r"\{0,1\}", "{0,1}"),
        (r"\Bigl(\sum_x a_x\Bigr)^2", "(∑_[x]a_[x])^[2]"),
        (r"\text{cost}(u) = \dots", "cost(u)=…"),
        (r"a = b \tag{1}", "a=b(1)"),
    ],
)
def test_structure(tex: str, expected: str) -> None:
    assert linear(tex) == expected


@pytest.mark.parametrize("tex", [r"\unknown x", r"\frac{1}", r"\hat", r"{a", r"\text{a"])
def test_what_cannot_be_shown_is_an_error(tex: str) -> None:
    with pytest.raises(MathError):
        mathml.mathml(tex, block=False)


def test_functions_have_the_spaces_of_tex() -> None:
    assert mathml.normalised(r"2\log n") == r"2 \, \log \, n"
    assert mathml.normalised(r"\log(n)") == r"\log ( n )"
    assert mathml.normalised(r"a = \log n") == r"a = \log \, n"
    assert mathml.normalised(r"\log^2 c") == r"\log^{2} \, c"


def test_a_long_formula_of_running_text_can_break_after_relations_outside_parentheses() -> None:
    parts = mathml.mathml(r"a = (b + c) + d, \qquad e \le f - g", block=False).split("<wbr>")
    ends = [re.search(r'<mo form="infix">(.)</mo></math>$', part) for part in parts[:-1]]
    assert [end and end[1] for end in ends] == ["=", "+", ",", "≤", "−"]
    assert "<wbr>" not in mathml.mathml("a = b", block=False)
    assert "<wbr>" not in mathml.mathml(r"a = (b + c) + d, \qquad e \le f - g", block=True)
