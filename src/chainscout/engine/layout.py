"""Where things stand in the engine's flat arrays. Whole numbers here are unsigned words in compiled code.

One replication is a *lane*, four lanes are a *group*: four doubles fill a vector register.

``words``: for every lane and chain a record of WORDS unsigned words, its random stream and where it is.
``reals``: for every lane and chain a record of floats, T and then the running sums.
``rows``: for every lane, chain and state a record of floats: N_x, Q_x = Σ_y N[x,y]², the row's terms, and N[x,·] itself.
    Counts are floats because rules receive floats: no conversion in the loop. They are exact below 2⁵³, and Q below
    N_x ≈ 9·10⁷; beyond that each addition to Q is correctly rounded.
``table``: alias words in the same places as the counts that they lead to, shared by all lanes.
``indices``, ``tree``: for every group and chain (or node) four values side by side, a lane each.
"""

ZERO, ONE, TWO, THREE, FOUR = 0, 1, 2, 3, 4

#: A chain's record in ``words``: the stream, the place of the current state's row, and of the first; S; how often it
#: was observed (a word of its own cache line a chain: 8 words).
POSITION, GAMMA, ROW, START, SIZE, SEEN = 0, 1, 2, 3, 4, 5
WORDS = 8

#: A chain's record in ``reals``: T, then the sums.
TRANSITIONS, SUMS = 0, 1

#: A row's record in ``rows``: N_x and Q_x, then the terms; with blocks, N_x when the terms were last computed; counts.
EXITS, SQUARES, TERMS = 0, 1, 2
