"""The running example of *Maintenance of Datalog Materialisations Revisited*, as data.

Figures 1 to 3 of the paper are pictures. The facts below are all that the text of
Examples 1, 2, 7, 8, 13 and 21 uses, and they give every number that the text states of the
figures: see the tests of Examples 1, 2, 7 and 8.
"""

from __future__ import annotations

from tests.papers.keeping import program_of

RULES = """
    T(x, y) :- R(x, y), !A(x).
    T(x, y) :- S(x, y), A(x).
    B(y) :- T(x, y), B(x).
"""  # (7), (8), (9)
PROGRAM = program_of(RULES, "A/1", "R/2", "S/2", "T/2", "B/1")
STRATA = ("T", "B")  # λ of (10); stratum 1, of A, R and S, has no rules

EXPLICIT = """
    R(b, e) S(b, f) T(a, b) T(b, c) T(c, d) T(d, c) T(e, c) T(f, g) T(g, c) B(a)
"""  # E of Figure 1
DERIVED = "T(b, e) B(b) B(c) B(d) B(e)"  # in bold there
UPDATE = "A(b)"  # E⁺ of Example 2; E⁻ is empty
DELETED = "T(b, e) B(e)"
ADDED = "A(b) T(b, f) B(f) B(g)"

# Instances of the rules by their number in the text of Example 2, and of Example 8.
FIRES = {
    11: "S(b, f), A(b) -> T(b, f)",
    12: "T(b, f), B(b) -> B(f)",
    13: "T(f, g), B(f) -> B(g)",
    14: "T(g, c), B(g) -> B(c)",
    15: "R(b, e), not A(b) -> T(b, e)",
    16: "T(b, e), B(b) -> B(e)",
    17: "T(e, c), B(e) -> B(c)",
    18: "T(b, c), B(b) -> B(c)",
    19: "T(d, c), B(d) -> B(c)",
    63: "T(a, b), B(a) -> B(b)",
    79: "T(c, d), B(c) -> B(d)",
}

# Figure 3: the multiplicity of each fact in N_i, by stratum. Stratum 2 is over T, stratum 3 over B.
STAYS = ["T(a, b)", "T(b, c)", "T(c, d)", "T(d, c)", "T(e, c)", "T(f, g)", "T(g, c)"]
OLD_T = {fact: {1: 1} for fact in [*STAYS, "T(b, e)"]}
NEW_T = {fact: {1: 1} for fact in [*STAYS, "T(b, f)"]}
OLD_B = {"B(a)": {1: 1}, "B(b)": {2: 1}, "B(c)": {3: 1, 4: 1, 5: 1}, "B(e)": {3: 1}, "B(d)": {4: 1}}
NEW_B = {
    "B(a)": {1: 1},
    "B(b)": {2: 1},
    "B(c)": {3: 1, 5: 2},
    "B(f)": {3: 1},
    "B(d)": {4: 1},
    "B(g)": {4: 1},
}

# The example without negation (Example 13): A_n is the complement of A, and what is explicit of
# T and B has relations of its own.
POSITIVE_RULES = """
    T(x, y) :- R(x, y), An(x).
    T(x, y) :- S(x, y), A(x).
    B(y) :- T(x, y), B(x).
    T(x, y) :- Te(x, y).
    B(x) :- Be(x).
"""  # (71) to (75)
POSITIVE = program_of(POSITIVE_RULES, "A/1", "An/1", "R/2", "S/2", "Te/2", "Be/1", "T/2", "B/1")
POSITIVE_EXPLICIT = """
    An(b) R(b, e) S(b, f) Te(a, b) Te(b, c) Te(c, d) Te(d, c) Te(e, c) Te(f, g) Te(g, c) Be(a)
"""
