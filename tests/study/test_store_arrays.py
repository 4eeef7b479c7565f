"""Arrays that are sent to PostgreSQL are those that arrive."""

import math

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chainscout.store.sql.postgres import array

BIG = 2**63
KINDS = {
    "bigint": st.integers(-BIG, BIG - 1),
    "float8": st.floats(allow_nan=False) | st.integers(-(2**53), 2**53),
    "text": st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
    "bytea": st.binary(),
}


@pytest.fixture(scope="module")
def connection(server):
    with psycopg.connect(server.address(), autocommit=True) as found:
        yield found


def same(sent, arrived):
    if isinstance(sent, float):  # minus zero is another number
        return sent == arrived and math.copysign(1, sent) == math.copysign(1, arrived)
    return sent == arrived


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_what_is_sent_arrives(connection, kind, data):
    values = data.draw(st.lists(KINDS[kind] | st.none()) | st.lists(KINDS[kind]))
    (arrived,) = connection.execute(f"SELECT %s::{kind}[]", (array(values),)).fetchone()
    assert len(arrived) == len(values)
    assert all(map(same, values, arrived))


def test_what_is_not_a_number_arrives(connection):
    (arrived,) = connection.execute("SELECT %s::float8[]", (array([math.nan, -math.inf, 1]),)).fetchone()
    assert math.isnan(arrived[0])
    assert arrived[1:] == [-math.inf, 1]
