"""A study in memory: the heap that orders chains, and records that an error leaves as they were."""

import copy
from dataclasses import fields

import pytest

from chainscout.store import ChainRecord, Content, MemoryStore, PathRecord, RowRecord, StudyRecord
from chainscout.store.memory.heap import Heap


def test_a_heap_of_keys_that_change():
    heap = Heap([3.0, 1.0, 1.0, None])
    assert heap.first() == 1
    assert heap.firsts(5) == [1, 2, 0]
    heap.set(1, 5.0)
    heap.set(1, 1.0)
    heap.set(1, 5.0)
    heap.set(3, 1.0)
    assert heap.firsts(2) == [2, 3]
    heap.set(2, None)
    assert heap.first() == 3
    for step in range(1000):
        heap.set(0, float(step))
        heap.set(2, float(-step))
    assert len(heap._entries) < 200
    assert heap.firsts(4) == [2, 3, 1, 0]


def new_store():
    study = StudyRecord(2, 8, 2, 8, 0.05, "sharp", "scout", "{}", 1, 0)
    chains = [ChainRecord(k, name, 2, index=1.0 + k, certificate=0.5) for k, name in enumerate("ab")]
    rows = {0: {1: RowRecord(3, 5, {0: 1, 1: 2}, (0.5,))}}
    store = MemoryStore(Content(study, chains, rows=rows, floor=True))
    with store.writing() as transaction:
        chain = transaction.numbered(0)
        chain.paths = 2
        transaction.save(chain)
        transaction.save_path(PathRecord(0, 1, "w", steps=2, last=1))
        transaction.save_path(PathRecord(0, 2, "v", token="t", expires=5.0, promised=3))
    return store


def changed(record, names):
    """Another value in each field."""
    for name in names:
        old = getattr(record, name)
        setattr(record, name, (7.0,) if isinstance(old, tuple) else not old if isinstance(old, bool) else 77)


def spoil(transaction, ways):
    """Changes all that a transaction can change, with rows taken in these ways, and fails."""
    changed(transaction.study, [f.name for f in fields(StudyRecord) if f.name not in StudyRecord.FIXED])
    for chain in transaction.every():
        changed(chain, [f.name for f in fields(ChainRecord) if f.name not in ChainRecord.FIXED])
        transaction.save(chain)
    chain = transaction.numbered(0)
    for way in ways:
        row = transaction.row(chain, 1) if way == "row" else transaction.rows(chain)[1]
        changed(row, ["terms", "stale"])
        if way == "row":
            changed(row, ["exits", "squares"])
            row.counts[0] = 9
    transaction.save_row(chain, 1, RowRecord(4))
    transaction.save_row(chain, 0, RowRecord(5))
    for path in transaction.held():
        path.token = None  # another holder, and another path under a lease
        transaction.save_path(path)
    first = transaction.path(chain, 1)
    changed(first, [f.name for f in fields(PathRecord) if f.name not in PathRecord.FIXED])
    transaction.save_path(first)
    transaction.save_path(PathRecord(0, 3, "u", token="s", expires=6.0))
    transaction.save_path(PathRecord(1, 1, "u", token="r", expires=7.0))
    assert [(path.chain, path.number) for path in transaction.held()] == [(0, 3), (1, 1), (0, 1)]
    raise ZeroDivisionError


@pytest.mark.parametrize("ways", [("row",), ("row", "rows"), ("rows", "row")])
def test_an_error_puts_every_field_of_every_record_back(ways):
    """Whatever field a record gets in future, and in whatever order a transaction takes rows."""
    store = new_store()
    before = copy.deepcopy((store.study, store.chains, store._rows, store._paths | {1: []}, store._held))
    orders = store.top(2), store.least(2)
    with pytest.raises(ZeroDivisionError), store.writing() as transaction:
        spoil(transaction, ways)
    assert (store.study, store.chains, store._rows, store._paths, store._held) == before
    assert (store.top(2), store.least(2)) == orders
    assert [(path.number, path.worker) for path in store.held()] == [(2, "v")]
    assert store.path(store.chains[0], 3) is None
    assert store.open_path(store.chains[0], "u") is None


def test_the_largest_certificate_follows_what_is_saved():
    store = new_store()
    assert (store.worst(aside=False), store.worst(aside=True)) == (0.5, 0.0)
    with store.writing() as transaction:
        first, second = transaction.every()
        first.certificate = 0.7
        transaction.save(first)
        assert transaction.worst(aside=False) == 0.7
        first.aside, second.certificate = True, 0.2
        transaction.save(first)
        transaction.save(second)
        assert (transaction.worst(aside=False), transaction.worst(aside=True)) == (0.2, 0.7)
        second.aside = True
        transaction.save(second)
        assert (transaction.worst(aside=False), transaction.worst(aside=True)) == (0.0, 0.7)
