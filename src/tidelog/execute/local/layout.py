"""How relations, indexes and compiled rules lie in memory: the fields of their records.

Each record is a block of 64-bit words; a constant is the number of a word in it.
"""

from __future__ import annotations

# --- a relation -------------------------------------------------------------
# Rows are `WORDS` words each, two 32-bit cells to a word, the first in the low half.
# They are append-only: rows [0, DELTA_LO) are OLD, [DELTA_LO, DELTA_HI) are DELTA.
ARITY = 0
WORDS = 1
ROWS = 2  # address of the rows
COUNT = 3  # rows
CAPACITY = 4  # rows there is room for
DELTA_LO = 5
DELTA_HI = 6
# The set of rows: a hash table of slots, see `tupleset`.
SLOTS = 7
MASK = 8  # slots - 1
LIMIT = 9  # slots that may be in use before an insertion reports that the table is full
BLOCK_BITS = 10  # 6: a slot holds a block of 64 neighbours; 0: one row
LAST_SHIFT = 11  # where the last cell stands in the last word: 0 or 32
INDEXES = 12  # address of a list of index addresses
INDEX_COUNT = 13
OUTPUTS = 14  # address of one output buffer for each worker
LEDGER = 15  # address of what maintenance knows of the rows (see `keep`); 0: nothing yet
ROUND_ENDS = 16  # a list of the number of rows at the end of each round: address, count, capacity
ROUND_COUNT = 17
ROUND_CAPACITY = 18
REPEATS = 19  # a filter of rows that were derived more than once (see `repeats`): address, 0: none; bits - 1
REPEAT_MASK = 20
REPEAT_COUNT = 21  # bits that were set, copies not counted
# Workers write this one all the time, so it has a cache line of its own.
USED = 24  # slots in use
RELATION_WORDS = 32

# --- a worker's buffer of new rows of a relation ------------------------------
OUT_ROWS = 0
OUT_COUNT = 1
OUT_CAPACITY = 2
OUT_WORDS = 16  # two cache lines, so that workers do not disturb each other

# --- an index ---------------------------------------------------------------
# A table of slots, one for each key, and a pool of entries; see `index`.
RELATION = 0
KEY_COUNT = 1
KEY_COLUMNS = 2  # address of the key's columns
CARRIED_COUNT = 3
CARRIED_COLUMNS = 4  # address of the columns that entries carry
ENTRY_WORDS = 5
SLOT_WORDS = 6
INDEX_SLOTS = 7
INDEX_SIZE = 8  # slots, a multiple of four
KEYS = 9  # slots in use
POOL = 10
POOL_USED = 11  # entries
POOL_CAPACITY = 12
UPTO = 13  # rows that are in the index
EXPECTED_SLOTS = 14  # since it was emptied: it grows to these sizes at once
EXPECTED_ENTRIES = 15
SCRATCH = 16  # address of memory for a key
FREE = 17  # heads of the lists of free buckets, one for each size 2^k
INDEX_WORDS = FREE + 40

# --- a compiled rule form -----------------------------------------------------
HEAD = 0  # address of the head's relation
STEP_COUNT = 1
STEPS = 2  # where in the code the steps begin
CONSTANT_COUNT = 3
CONSTANTS = 4  # pairs (register, value)
HEAD_REGISTERS = 5
FORM_WORDS = 8

# --- a step: the driver, or one more atom to join ------------------------------
KIND = 0
SOURCE = 1  # address of the relation
INDEX = 2  # address of the index, for PROBE
VERSION = 3
STEP_KEYS = 4  # registers that make the key
LOAD_COUNT = 5
LOADS = 6  # pairs (byte offset, register)
TEST_COUNT = 7
TESTS = 8  # pairs (byte offset, register) that must be equal
CHECK_COUNT = 9
CHECKS = 10
TIGHT = 11  # which of the tight inner loops serves this step; LOOSE for none
MOVE_COUNT = 12  # cells of a match that go to the head
MOVES = 13  # triples (byte offset, word of the head, shift in it)
FROM_ROW = 14  # offsets count from the row, not from the index entry
STEP_WORDS = 15

SCAN, PROBE, UNIT = 0, 1, 2
ALL, OLD, DELTA = 0, 1, 2
LOOSE, ONE_WORD, TWO_WORDS, COUNT_ONLY = 0, 1, 2, 3

# --- a check: made once the variables of a step are known -----------------------
CHECK_KIND = 0
CHECK_TARGET = 1  # address of the relation or index
CHECK_CELLS = 2  # where the list of registers begins
CHECK_LEFT = 2
CHECK_RIGHT = 3
CHECK_WORDS = 4
MEMBER, NOT_MEMBER, EXISTS, NOT_EXISTS = 0, 1, 2, 3
SAME, DIFFERENT, LESS, LESS_EQUAL = 4, 5, 6, 7

# --- the state of a run -------------------------------------------------------
# One block shared by the kernels of a fixpoint.
RUN_FORM = 0  # form to go on with
RUN_ROW = 1  # and its driver's row
RUN_ROUND = 2
RUN_NEW = 3  # rows derived so far
RUN_CURSOR = 4  # next driver row to hand to a worker (parallel rounds)
RUN_END = 5
RUN_TASK = 6  # next index to bring up to date (parallel rounds)
RUN_WIDE = 7  # address of the table of wide integers
RUN_ALONE = 8  # 1 while a lone worker runs, which may grow tables itself
RUN_FIRST = 9  # 0: the number of the first worker
RUN_CONSIDERED = 10  # rule instances before the current round
RUN_HEAVY = 11  # 1 if the last round considered so many that the next is worth sharing
RUN_WORDS = 16
