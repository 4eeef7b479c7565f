"""Chains from published tables, typed as printed; tests check the tables' totals.

A row of counts, per cents or rounded probabilities is divided by its sum.
"""

from collections.abc import Sequence

import numpy as np

from ...chains import MarkovChain
from .entry import Chains, Entry

#: Durbin, Eddy, Krogh & Mitchison (1998), p. 50, the table of the + model: inside CpG islands. Rows and columns ACGT.
CPG_ISLAND = (
    (0.180, 0.274, 0.426, 0.120),
    (0.171, 0.368, 0.274, 0.188),
    (0.161, 0.339, 0.375, 0.125),
    (0.079, 0.355, 0.384, 0.182),
)
#: The same page, the table of the − model: the rest of the sequences.
CPG_BACKGROUND = (
    (0.300, 0.205, 0.285, 0.210),
    (0.322, 0.298, 0.078, 0.302),
    (0.248, 0.246, 0.298, 0.208),
    (0.177, 0.239, 0.292, 0.292),
)
#: Avery & Henderson (1999): transitions between 1,096 successive days. States: no rain, up to 5 mm, more.
ALOFI_RAINFALL = (
    (362, 126, 60),
    (136, 90, 68),
    (50, 79, 124),
)
#: Craig & Sendi (2002): patients by CD4 count at the start (row) and six months later (column).
CD4_COUNTS = (
    (682, 33, 25),
    (154, 64, 47),
    (19, 19, 43),
)
#: Gupton, Finger & Bhatia (1997), one-year transition matrix, in per cent. The last row is implied: default is final.
SP_RATINGS = (
    (90.81, 8.33, 0.68, 0.06, 0.12, 0.00, 0.00, 0.00),
    (0.70, 90.65, 7.79, 0.64, 0.06, 0.14, 0.02, 0.00),
    (0.09, 2.27, 91.05, 5.52, 0.74, 0.26, 0.01, 0.06),
    (0.02, 0.33, 5.95, 86.93, 5.30, 1.17, 0.12, 0.18),
    (0.03, 0.14, 0.67, 7.73, 80.53, 8.84, 1.00, 1.06),
    (0.00, 0.11, 0.24, 0.43, 6.48, 83.46, 4.07, 5.20),
    (0.22, 0.00, 0.22, 1.30, 2.38, 11.24, 64.86, 19.79),
    (0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 0.00, 100.00),
)
RATINGS = ("AAA", "AA", "A", "BBB", "BB", "B", "CCC", "D")


def cpg_islands() -> Chains:
    """The nucleotide chains inside and outside CpG islands."""
    return {"island": _chain(CPG_ISLAND, "ACGT"), "background": _chain(CPG_BACKGROUND, "ACGT")}


def alofi_rainfall() -> Chains:
    """Daily rainfall in millimetres."""
    return {"alofi": _chain(ALOFI_RAINFALL, ("0", "1-5", "6+"))}


def cd4() -> Chains:
    """CD4 counts six months apart."""
    return {"cd4": _chain(CD4_COUNTS, ("0-49", "50-74", "75-UP"))}


def sp_ratings() -> Chains:
    """Credit ratings a year apart. Default is absorbing, and no path starts there."""
    return {"ratings": _chain(SP_RATINGS, RATINGS, [1 / 7] * 7 + [0])}


def _chain(
    table: Sequence[Sequence[float]], states: Sequence[str], initial: Sequence[float] | None = None
) -> MarkovChain:
    rows = np.array(table, dtype=np.float64)
    return MarkovChain(rows / rows.sum(axis=1, keepdims=True), initial, list(states))


PUBLISHED = (
    Entry(
        "cpg-islands",
        cpg_islands,
        "Nucleotides along human DNA, inside CpG islands and in the background. The tables are rounded to three"
        " decimals; rows are divided by their sums, off by at most 0.001.",
        "R. Durbin, S. Eddy, A. Krogh and G. Mitchison, Biological Sequence Analysis, Cambridge University Press 1998,"
        " p. 50, the tables of the + and - models.",
    ),
    Entry(
        "alofi-rainfall",
        alofi_rainfall,
        "Daily rainfall at Alofi, Niue, 1987 to 1989, in three classes: none, up to 5 mm, more. From 1,095"
        " transitions.",
        "P. J. Avery and D. A. Henderson, Fitting Markov chain models to discrete state series such as DNA sequences,"
        " Applied Statistics 48 (1999) 53-61; counts as in the data set rain of the R package markovchain.",
    ),
    Entry(
        "cd4",
        cd4,
        "CD4 cell counts of patients with HIV, six months apart, in three classes. From 1,086 transitions.",
        "B. A. Craig and P. P. Sendi, Estimation of the transition matrix of a discrete-time Markov chain, Health"
        " Economics 11 (2002) 33-42; counts as in the data set craigsendi of the R package markovchain.",
    ),
    Entry(
        "sp-ratings",
        sp_ratings,
        "Standard & Poor's credit ratings a year apart. Default is absorbing, so the chain is not irreducible: what"
        " needs ergodicity is refused. The table is in per cent; rows are divided by their sums, off by at most"
        " 0.01 %.",
        "G. M. Gupton, C. C. Finger and M. Bhatia, CreditMetrics: Technical Document, J. P. Morgan 1997, the one-year"
        " transition matrix, there taken from Standard & Poor's CreditWeek, 15 April 1996.",
    ),
)
