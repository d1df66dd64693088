"""Raw memory for kernels: loads and stores at addresses, atomic ones too, and the C heap.

Relations grow while a kernel runs, and one kernel serves any number of relations
of any arity. Arrays passed as arguments can do neither, so kernels work on plain
addresses (int64) of blocks from `realloc`, which grows the largest ones without
copying. Each operation here becomes one or two machine instructions.

Words are int64 throughout: Numba promotes int64 with uint64 to float64.
"""

from __future__ import annotations

import ctypes
import hashlib
import inspect
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

Words = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Cells = npt.NDArray[np.uint32]

_F = TypeVar("_F", bound=Callable[..., object])


def _sources() -> str:
    """A digest of the modules that kernels are in."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


SOURCES = _sources()
_TYPES = {"int": types.int64, "Words": types.int64[::1]}  # of parameters that `preload` knows


def kernel(function: _F, *, in_place: bool = False) -> _F:
    """Compile once, cache on disk, run without the interpreter lock."""
    compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy", forceinline=in_place)(function)
    # Numba takes a cached kernel as valid while the file it is written in stays the same, but
    # kernels contain others from other files: a cached one is valid while none of them changes.
    compiled._cache._cache_file._source_stamp = SOURCES
    return cast(_F, compiled)


def is_compiled(function: object) -> bool:
    """Whether a kernel has been compiled before, by this process or another."""
    compiled: Any = function
    return bool(compiled.signatures or compiled._cache._cache_file._load_index())


def preload(*functions: object) -> None:
    """Have kernels in memory before they are called first: to load one takes as long as many commits."""
    for function in functions:
        compiled: Any = function
        annotations = inspect.get_annotations(compiled.py_func)
        compiled.compile(tuple(_TYPES[name] for at, name in annotations.items() if at != "return"))


def inlined(function: _F) -> _F:
    """A part of kernels that is always compiled in place, so that constant arguments fold."""
    return kernel(function, in_place=True)


# --- instructions ------------------------------------------------------------

_I8 = ir.IntType(8)
_I8P = _I8.as_pointer()
_I16 = ir.IntType(16)
_I32 = ir.IntType(32)
_I64 = ir.IntType(64)

# Emits the instructions of an operation on int64 arguments; None where it has no result.
_Emit = Callable[[ir.IRBuilder, Sequence[ir.Value]], ir.Value | None]


def _operation(parameters: int, emit: _Emit, *, result: bool = True) -> Any:
    """An operation for kernels, from a function that emits its instructions."""
    signature = (types.int64 if result else types.void)(*[types.int64] * parameters)

    def codegen(context: Any, builder: ir.IRBuilder, _: object, args: Sequence[ir.Value]) -> ir.Value:
        value = emit(builder, args)
        return value if result else context.get_dummy_value()

    # Numba counts the parameters of the function it is given.
    if parameters == 1:
        return intrinsic(lambda typingctx, a: (signature, codegen))
    if parameters == 2:
        return intrinsic(lambda typingctx, a, b: (signature, codegen))
    return intrinsic(lambda typingctx, a, b, c: (signature, codegen))


def _word(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    return builder.inttoptr(address, _I64.as_pointer())


def _numbered(builder: ir.IRBuilder, args: Sequence[ir.Value]) -> ir.Value:
    return builder.gep(_word(builder, args[0]), [args[1]])


def _cell(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    return builder.inttoptr(address, _I32.as_pointer())


def _half(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    return builder.inttoptr(address, _I16.as_pointer())


def _block(builder: ir.IRBuilder, address: ir.Value) -> ir.Value:
    return builder.inttoptr(address, _I8P)


def _c_function(builder: ir.IRBuilder, name: str, kind: ir.FunctionType) -> ir.Function:
    find: Callable[..., ir.Function] = cgutils.get_or_insert_function
    return find(builder.module, kind, name)


def _emit_exchange(builder: ir.IRBuilder, args: Sequence[ir.Value]) -> ir.Value:
    found = builder.cmpxchg(_word(builder, args[0]), args[1], args[2], "acq_rel", "acquire")
    return builder.extract_value(found, 0)


def _emit_realloc(builder: ir.IRBuilder, args: Sequence[ir.Value]) -> ir.Value:
    function = _c_function(builder, "realloc", ir.FunctionType(_I8P, [_I8P, _I64]))
    return builder.ptrtoint(builder.call(function, [_block(builder, args[0]), args[1]]), _I64)


def _emit_calloc(builder: ir.IRBuilder, args: Sequence[ir.Value]) -> ir.Value:
    function = _c_function(builder, "calloc", ir.FunctionType(_I8P, [_I64, _I64]))
    return builder.ptrtoint(builder.call(function, [args[0], ir.Constant(_I64, 1)]), _I64)


def _emit_free(builder: ir.IRBuilder, args: Sequence[ir.Value]) -> None:
    function = _c_function(builder, "free", ir.FunctionType(ir.VoidType(), [_I8P]))
    builder.call(function, [_block(builder, args[0])])


def _emit_madvise(builder: ir.IRBuilder, args: Sequence[ir.Value]) -> None:
    function = _c_function(builder, "madvise", ir.FunctionType(_I32, [_I8P, _I64, _I32]))
    builder.call(function, [_block(builder, args[0]), args[1], builder.trunc(args[2], _I32)])


def _emit_prefetch(builder: ir.IRBuilder, args: Sequence[ir.Value]) -> None:
    function = _c_function(
        builder, "llvm.prefetch.p0", ir.FunctionType(ir.VoidType(), [_I8P, _I32, _I32, _I32])
    )
    read, keep, data = (ir.Constant(_I32, value) for value in (0, 3, 1))
    builder.call(function, [_block(builder, args[0]), read, keep, data])


def _emit_memcpy(builder: ir.IRBuilder, args: Sequence[ir.Value]) -> None:
    function = _c_function(builder, "memcpy", ir.FunctionType(_I8P, [_I8P, _I8P, _I64]))
    builder.call(function, [_block(builder, args[0]), _block(builder, args[1]), args[2]])


# word(record, number) and set_word(record, number, word) for the words of a record;
# load64(address), store64(address, word); a 32-bit cell is loaded without sign.
word: Callable[[int, int], int] = _operation(2, lambda b, a: b.load(_numbered(b, a)))
set_word: Callable[[int, int, int], None] = _operation(
    3, lambda b, a: b.store(a[2], _numbered(b, a)), result=False
)
load64: Callable[[int], int] = _operation(1, lambda b, a: b.load(_word(b, a[0])))
store64: Callable[[int, int], None] = _operation(2, lambda b, a: b.store(a[1], _word(b, a[0])), result=False)
load32: Callable[[int], int] = _operation(1, lambda b, a: b.zext(b.load(_cell(b, a[0]), align=4), _I64))
store32: Callable[[int, int], None] = _operation(
    2, lambda b, a: b.store(b.trunc(a[1], _I32), _cell(b, a[0]), align=4), result=False
)

load16: Callable[[int], int] = _operation(1, lambda b, a: b.zext(b.load(_half(b, a[0]), align=2), _I64))
store16: Callable[[int, int], None] = _operation(
    2, lambda b, a: b.store(b.trunc(a[1], _I16), _half(b, a[0]), align=2), result=False
)
load8: Callable[[int], int] = _operation(1, lambda b, a: b.zext(b.load(_block(b, a[0]), align=1), _I64))
store8: Callable[[int, int], None] = _operation(
    2, lambda b, a: b.store(b.trunc(a[1], _I8), _block(b, a[0]), align=1), result=False
)

# The same for words that other threads load and store: a store publishes all stores before it.
load_shared: Callable[[int], int] = _operation(1, lambda b, a: b.load_atomic(_word(b, a[0]), "acquire", 8))
store_shared: Callable[[int, int], None] = _operation(
    2, lambda b, a: b.store_atomic(a[1], _word(b, a[0]), "release", 8), result=False
)

# exchange_if(address, expected, word): store if the word there is the expected one.
# All three give back the word that was there before.
exchange_if: Callable[[int, int, int], int] = _operation(3, _emit_exchange)
fetch_or: Callable[[int, int], int] = _operation(
    2, lambda b, a: b.atomic_rmw("or", _word(b, a[0]), a[1], "acq_rel")
)
fetch_add: Callable[[int, int], int] = _operation(
    2, lambda b, a: b.atomic_rmw("add", _word(b, a[0]), a[1], "acq_rel")
)

# Have the memory at an address on its way into the cache.
prefetch: Callable[[int], None] = _operation(1, _emit_prefetch, result=False)

# The C heap. 0 comes back when there is no memory.
_realloc: Callable[[int, int], int] = _operation(2, _emit_realloc)
_calloc: Callable[[int], int] = _operation(1, _emit_calloc)
_madvise: Callable[[int, int, int], None] = _operation(3, _emit_madvise, result=False)
release: Callable[[int], None] = _operation(1, _emit_free, result=False)
copy: Callable[[int, int, int], None] = _operation(3, _emit_memcpy, result=False)

# Large blocks are read at random all over. In pages of 4 KB most of these reads would also have to
# look up where the page is; the kernel is asked for pages of 2 MB.
PAGE = 1 << 12
HUGE_FROM = 1 << 23
MADV_HUGEPAGE = 14
HAS_HUGE_PAGES = sys.platform == "linux"


@kernel
def use_huge_pages(block: int, size: int) -> None:
    """Ask for huge pages in all of a block.

    In all of it: advice for a part would make two mappings of one, and `realloc` would have to copy them.
    """
    if HAS_HUGE_PAGES and block and size >= HUGE_FROM:
        start = block & ~(PAGE - 1)
        end = (block + size + PAGE - 1) & ~(PAGE - 1)
        _madvise(start, end - start, MADV_HUGEPAGE)


@kernel
def reallocate(block: int, size: int) -> int:
    """Let a block have another size; reallocate(0, size) makes one."""
    grown = _realloc(block, size)
    use_huge_pages(grown, size)
    return grown


@kernel
def reallocate_sparse(block: int, size: int) -> int:
    """The same for a block of which little will ever be touched: in small pages."""
    return _realloc(block, size)


@kernel
def allocate_zeroed(size: int) -> int:
    """A block of zeros."""
    block = _calloc(size)
    use_huge_pages(block, size)
    return block


@kernel
def allocate_sparse(size: int) -> int:
    """A block of zeros of which little will ever be touched."""
    return _calloc(size)


# --- from Python -------------------------------------------------------------


class _Block:
    """Memory that NumPy is to see as an array; a type of `ctypes` for each length would take longer."""

    __slots__ = ("__array_interface__",)

    def __init__(self, address: int, count: int, kind: type[np.generic]) -> None:
        self.__array_interface__ = {
            "data": (address, False),
            "shape": (count,),
            "typestr": np.dtype(kind).str,
            "version": 3,
        }


def cells_at(address: int, count: int) -> Cells:
    """The 32-bit cells at an address, as an array that does not own them."""
    return array_at(address, count, np.uint32)


def array_at(address: int, count: int, kind: type[np.generic]) -> npt.NDArray[Any]:
    """The elements of a kind at an address, as an array that does not own them."""
    return np.asarray(_Block(address, count, kind)) if count else np.empty(0, kind)


_C = ctypes.CDLL(None)
_C.malloc.restype = ctypes.c_void_p
_C.malloc.argtypes = [ctypes.c_size_t]
_C.free.argtypes = [ctypes.c_void_p]


def free(address: int) -> None:
    """Give a block back."""
    _C.free(address)


LARGEST_KEPT = (1 << 25) - (1 << 13)


@cache
def keep_memory() -> None:
    """Let the C library keep blocks that are given back, for the next ones, instead of handing them on.

    A page that comes from the system anew costs as much as deriving a hundred tuples. The C library of Linux
    keeps blocks smaller than the largest mapping that was ever given back, up to 32 MB. So it is given one.
    """
    _C.free(_C.malloc(LARGEST_KEPT))


class Owned:
    """A block that is given back with the object."""

    def __init__(self, size: int) -> None:
        self.address = 0
        self.resize(size)

    def resize(self, size: int) -> None:
        """Let it have another size; what is in it stays."""
        block = reallocate(self.address, size)
        if not block:
            raise MemoryError
        self.address = block

    def __del__(self) -> None:
        free(self.address)
