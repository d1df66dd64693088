"""Z-sets: sets whose members have whole numbers as weights (DYRE, Definition 4.1).

A change is a Z-set too: what comes has weight 1, what goes has weight -1, and a change is
applied by adding it. A member of weight 0 is not a member.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, ItemsView, Iterable, Iterator, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
L = TypeVar("L", bound=Hashable)


class ZSet(Generic[K]):
    """Members with weights; never changed in place.

    >>> before, change = ZSet({"a": 1, "b": 2}), ZSet({"a": -1, "c": 1})
    >>> before + change
    ZSet({'b': 2, 'c': 1})
    >>> (before + change).toset() - before.toset()
    ZSet({'c': 1, 'a': -1})
    """

    def __init__(self, weights: Mapping[K, int] | None = None) -> None:
        self._weights = {member: weight for member, weight in (weights or {}).items() if weight}

    @classmethod
    def of(cls, members: Iterable[K]) -> ZSet[K]:
        """Every member with as much weight as it has places in `members`."""
        weights: dict[K, int] = {}
        for member in members:
            weights[member] = weights.get(member, 0) + 1
        return cls(weights)

    def __getitem__(self, member: K) -> int:
        """The weight of a member; 0 for all others."""
        return self._weights.get(member, 0)

    def __contains__(self, member: object) -> bool:
        return member in self._weights

    def __iter__(self) -> Iterator[K]:
        return iter(self._weights)

    def __len__(self) -> int:
        return len(self._weights)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ZSet) and self._weights == other._weights

    def __hash__(self) -> int:
        return hash(frozenset(self._weights.items()))

    def __repr__(self) -> str:
        return f"ZSet({self._weights!r})"

    def items(self) -> ItemsView[K, int]:
        """The members, each with its weight."""
        return self._weights.items()

    def __add__(self, other: ZSet[K]) -> ZSet[K]:
        weights = dict(self._weights)
        for member, weight in other.items():
            weights[member] = weights.get(member, 0) + weight
        return ZSet(weights)

    def __neg__(self) -> ZSet[K]:
        return ZSet({member: -weight for member, weight in self._weights.items()})

    def __sub__(self, other: ZSet[K]) -> ZSet[K]:
        return self + -other

    def toset(self) -> ZSet[K]:
        """The members of positive weight, each once."""
        return ZSet({member: 1 for member, weight in self._weights.items() if weight > 0})

    def linear(self, function: Callable[[K], Iterable[L]]) -> ZSet[L]:
        """Every member replaced by those that `function` gives for it, with its weight.

        This is linear: the image of a sum is the sum of the images.
        """
        weights: dict[L, int] = {}
        for member, weight in self._weights.items():
            for image in function(member):
                weights[image] = weights.get(image, 0) + weight
        return ZSet(weights)
