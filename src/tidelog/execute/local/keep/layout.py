"""How ledgers, cursors and compiled readings lie in memory, as in `local.layout`."""

from __future__ import annotations

# --- a ledger: what maintenance knows of a relation's rows ------------------------
# Arrays have an element for each row and grow together (see `ledger.make_room`); not those of touched rows.
MARKS = 0  # address: 16 bits for each row, the marks of `plan.parts` and TOUCHED
NUMBERS = 1  # address: (first << 32 | count) for each row; 0 while no numbers are kept
TRACES = 2  # address: for each row the first node of its trace; 0 while none are kept
OLD_MARKS = 3  # the same as they were at `begin`, for each touched row, in the order of the list of these
OLD_NUMBERS = 4
OLD_TRACES = 5
ROOM = 6  # rows that the arrays have room for
TOUCHED_ROWS = 7  # a list: address, count, capacity
QUEUE = 10  # a list: rows that are QUEUED
NOW = 13  # a list: rows that are CURRENT
MAP = 16  # tuple -> row: a table of 32-bit slots, 0: empty, else the row's number + 1
MAP_MASK = 17
MAP_USED = 18
MAP_UPTO = 19  # rows that are in the map; 0: there is no map yet
AT_BEGIN = 20  # rows when the commit began
DEAD = 21  # rows that are stored but linked nowhere
HIDING = 23  # 1 while rows that do not hold now are linked nowhere (see `ending.hide_lost`)
TRACE_POOL = 24  # nodes of traces (see `traces`): address, nodes used, capacity, first free one
TRACE_USED = 25
TRACE_CAPACITY = 26
TRACE_FREE = 27
DRIVEN = 28  # scratch of `steps`: address, for each row the iteration in which it last drove
PENDING = 29  # scratch of `steps`: address, for each row the change of its count in this iteration
FORMER = 34  # scratch of `steps`: address, for each touched row its numbers at `begin`, at its place
CANDIDATES = 30  # a list, of `steps`: rows to look at when the iteration ends
STARTED = 33  # touched rows when a sweep began
LEDGER_WORDS = 40

TOUCHED = 1 << 13
LISTED = 1 << 14  # it is among the candidates of an iteration
ALL_MARKS = TOUCHED - 1

# --- a list of rows ------------------------------------------------------------
LIST = 0
LIST_COUNT = 1
LIST_CAPACITY = 2

# --- a compiled reading ----------------------------------------------------------
F_HEAD = 0  # address of the head's relation
F_STEP_COUNT = 1
F_STEPS = 2  # where in the code the steps begin
F_CONSTANT_COUNT = 3
F_CONSTANTS = 4  # pairs (register, value)
F_HEAD_REGISTERS = 5
F_DRIVER = 6  # address of the driver's relation; 0: none
F_DRIVER_PART = 7  # address of the driver's table
F_NUMBER = 8  # the number of the reading in its task, for counting
F_SIGN = 9  # what an instance adds to the head's count
F_RUNS = 10  # the runs that have the rule (see `timing`)
F_OWN = 11  # how many atoms of the body are over the task's own relations
F_SLOT = 12  # which of them drives; -1: none
F_OTHER = 13  # the same reading in another order; 0: there is none
F_RESERVE = 14  # how many matches an order in reserve should have at first; 0: there is none
F_REGRET = 15  # how many matches more than that there were so far
F_WORDS = 16

# --- a step ------------------------------------------------------------------------
KIND = 0
SOURCE = 1  # address of the relation
INDEX = 2
PART = 3  # address of the part's table
KEYS = 4  # registers that make the key
KEY_CELLS = 5
LOADS = 6  # pairs (byte offset in the row, register)
LOAD_COUNT = 7
TESTS = 8  # pairs (byte offset in the row, register) that must be equal
TEST_COUNT = 9
CHECKS = 10  # comparisons of registers, as in `local.layout`
CHECK_COUNT = 11
BODY = 12  # 1: an atom of the body over one of the task's own relations
SLOT = 13  # which of these atoms it is, counted in the order of the body
FLIP = 14  # 1: stands for a negated atom, so a run has it where the tuple is missing
TAKEN_FROM = 15  # the bucket of the last match that was taken, and where it is:
TAKEN = 16  # it is tried first when the same bucket is opened again
STEP_WORDS = 17

GIVEN, SCAN, PROBE, LOOKUP, ABSENT, CALL, UNIT = 0, 1, 2, 3, 4, 5, 6

# --- a cursor ---------------------------------------------------------------------------
C_LEVEL = 0  # the step to go on with; -1: at the end
C_REGISTERS = 1  # addresses
C_STACK = 2  # for each step: see below
C_ROWS = 3  # for each step: the number of the matched row
C_SCRATCH = 4
C_WIDE = 5  # the table of wide integers
C_LIMIT = 6  # own tuples of the body must have a first below this less 1; 0: any will do
C_FORM = 7  # the reading
C_MODE = 8  # 0: tuples are read by parts; 1: by the runs that have them (see `timing`)
C_POSSIBLE = 9  # address: for each level, the runs that can have the instance up to there
C_WORK = 10  # address of the number of tuples looked at so far
C_PRUNED = 11  # 1: some tuple was left out because its first is not below the limit
C_WORDS = 12

# --- where a cursor is in a step ----------------------------------------------------------
S_NEXT = 0  # the next match: its address, or number
S_LEFT = 1  # how many there are from there on
S_STRIDE = 2  # how far apart they are
S_BUCKET = 3  # where they begin and end; past the end it goes on at the beginning
S_END = 4
STACK_WORDS = 5

NONE, FOUND, MISS = 0, 1, 2  # how a cursor answers

# --- a running task -----------------------------------------------------------------------
R_STAGE = 0
R_RELATION = 1
R_POSITION = 2
R_FORM = 3
R_OPEN = 4  # 1: a cursor is in the middle of a driver row
R_CONSIDERED = 5
R_BUDGET = 6
R_ROUNDS = 7
R_NEW = 8
R_COUNTS = 9  # address: instances of each reading
R_RANKS = 10
R_CURSOR = 11
R_GUARD_CURSOR = 12
R_WORK = 30  # tuples looked at
R_INSTANCES = 31  # what instances mean for counts: 0 nothing, or GAINED, LOST, ... (see `sweep`)
R_UNDECIDED = 32  # tuples that fell and may still follow
R_PORTION = 33  # with this portion, one of 2 ** this of the changes is taken up
R_FURTHER = 34  # 1: half of these were taken up before
# Of `steps`:
R_K = 13  # the iteration
R_BUCKETS = 14  # for each iteration the first of its events: address, room
R_BUCKET_ROOM = 15
R_POOL = 16  # events: address, words used, words there is room for
R_POOL_USED = 17
R_POOL_ROOM = 18
R_LAST = 19  # the last iteration that has events
R_EVENT = 20
R_FOUND = 21  # instances of a candidate in this iteration, and the next iteration that has one
R_LATER = 22
R_KEEP = 23  # 1: traces; 0: first iteration and count
# Of `proof` (words of `steps` serve again):
R_DEPTH = 13  # frames on the stack
R_LIMIT = 14  # how deep a branch may be; -1: as deep as it goes
R_FRAMES = 15  # address, frames there is room for, words of a frame
R_FRAME_ROOM = 16
R_FRAME_WORDS = 17
R_PROOF = 18  # what a guard is doing
R_ROW = 19  # the tuple that is being checked: the number of its relation, its row
R_ROW_RELATION = 20
R_ASKING = 21  # the address of the cursor that has missed a value
R_LEFT = 22  # address of a list of pairs (relation number, row): tuples to be proved
R_LEFT_AT = 24  # how far it is done
R_WORDS = 40

# How a task's kernel answers.
DONE, MISSING, OVER_BUDGET, NO_MEMORY, TOO_MANY, MISSING_IN_GUARD, MISSING_IN_FRAME = 0, 1, 2, 3, 4, 5, 6
PORTION_DONE = 7  # there are more changes to be taken up

# Stages of a sweep.
STARTING, SEEDING, GUARDING, SPREADING = 0, 1, 2, 3
