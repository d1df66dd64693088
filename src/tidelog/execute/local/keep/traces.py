"""Traces: for a row, how many instances derive it in each iteration.

A trace is a list of nodes in the order of iterations, in a pool of 16-byte nodes: iteration,
count, and the next node. Node 0 is no node.
"""

# ruff: noqa: D103  (kernels: plain loops and branches)
from __future__ import annotations

from tidelog.execute.local.keep.layout import TRACE_CAPACITY, TRACE_FREE, TRACE_POOL, TRACE_USED, TRACES
from tidelog.execute.local.memory import kernel, load32, reallocate, set_word, store32, word

ITERATION, NODE_COUNT, NEXT = 0, 4, 8  # bytes of a node


@kernel
def new_node(ledger: int) -> int:
    """A node; 0: no memory."""
    free = word(ledger, TRACE_FREE)
    if free:
        set_word(ledger, TRACE_FREE, load32(word(ledger, TRACE_POOL) + 16 * free + NEXT))
        return free
    used = max(1, word(ledger, TRACE_USED))
    if used >= word(ledger, TRACE_CAPACITY):
        capacity = max(64, used + used // 2)
        pool = reallocate(word(ledger, TRACE_POOL), 16 * capacity)
        if pool == 0:
            return 0
        set_word(ledger, TRACE_POOL, pool)
        set_word(ledger, TRACE_CAPACITY, capacity)
    set_word(ledger, TRACE_USED, used + 1)
    return used


@kernel
def free_node(ledger: int, node: int) -> None:
    store32(word(ledger, TRACE_POOL) + 16 * node + NEXT, word(ledger, TRACE_FREE))
    set_word(ledger, TRACE_FREE, node)


@kernel
def free_trace(ledger: int, trace: int) -> None:
    while trace:
        following = load32(word(ledger, TRACE_POOL) + 16 * trace + NEXT)
        free_node(ledger, trace)
        trace = following


@kernel
def copy_trace(ledger: int, trace: int) -> int:
    """A copy; 0: no memory, or nothing to copy."""
    first, last = 0, 0
    while trace:
        node = new_node(ledger)
        if node == 0:
            return 0
        pool = word(ledger, TRACE_POOL)
        store32(pool + 16 * node + ITERATION, load32(pool + 16 * trace + ITERATION))
        store32(pool + 16 * node + NODE_COUNT, load32(pool + 16 * trace + NODE_COUNT))
        store32(pool + 16 * node + NEXT, 0)
        if last:
            store32(pool + 16 * last + NEXT, node)
        else:
            first = node
        last = node
        trace = load32(pool + 16 * trace + NEXT)
    return first


@kernel
def trace_of(ledger: int, row: int) -> int:
    return load32(word(ledger, TRACES) + 4 * row)


@kernel
def add_to_trace(ledger: int, row: int, iteration: int, change: int) -> int:
    """Change the count of an iteration, of a touched row; the new count, or -1 without memory."""
    pool = word(ledger, TRACE_POOL)
    at = trace_of(ledger, row)
    last = 0
    while at and load32(pool + 16 * at + ITERATION) < iteration:
        last = at
        at = load32(pool + 16 * at + NEXT)
    if at and load32(pool + 16 * at + ITERATION) == iteration:
        count = load32(pool + 16 * at + NODE_COUNT) + change
        if count >> 32:
            return -1  # more derivations than a count can hold
        if count:
            store32(pool + 16 * at + NODE_COUNT, count)
            return count
        following = load32(pool + 16 * at + NEXT)
        if last:
            store32(pool + 16 * last + NEXT, following)
        else:
            store32(word(ledger, TRACES) + 4 * row, following)
        free_node(ledger, at)
        return 0
    node = new_node(ledger)
    if node == 0:
        return -1
    pool = word(ledger, TRACE_POOL)
    store32(pool + 16 * node + ITERATION, iteration)
    store32(pool + 16 * node + NODE_COUNT, change)
    store32(pool + 16 * node + NEXT, at)
    if last:
        store32(pool + 16 * last + NEXT, node)
    else:
        store32(word(ledger, TRACES) + 4 * row, node)
    return change


@kernel
def count_in(ledger: int, row: int, iteration: int) -> int:
    """The count of an iteration."""
    pool = word(ledger, TRACE_POOL)
    at = trace_of(ledger, row)
    while at:
        if load32(pool + 16 * at + ITERATION) == iteration:
            return load32(pool + 16 * at + NODE_COUNT)
        at = load32(pool + 16 * at + NEXT)
    return 0


@kernel
def next_iteration(ledger: int, row: int, after: int) -> int:
    """The first iteration behind one that has a count; 0: there is none."""
    pool = word(ledger, TRACE_POOL)
    at = trace_of(ledger, row)
    while at:
        if load32(pool + 16 * at + ITERATION) > after:
            return load32(pool + 16 * at + ITERATION)
        at = load32(pool + 16 * at + NEXT)
    return 0


def read(ledger: int, row: int) -> dict[int, int]:
    """The trace of a row, as iteration -> count."""
    found: dict[int, int] = {}
    iteration = next_iteration(ledger, row, 0)
    while iteration:
        found[int(iteration)] = int(count_in(ledger, row, iteration))
        iteration = next_iteration(ledger, row, iteration)
    return found
