"""What updates and recomputing have cost a stratum, and what the next update should: the memory of `auto`.

Costs are kept as seconds for each change below the stratum, as far as tuples looked at explain them. Sizes
of updates are told apart, by factors of four, because cost need not grow with the number of changes: losses
that hit the same tuples cost less together, and losses that leave a tuple without support cost more.

Costs differ by orders of magnitude from one fact to the next, so what a change has cost *of late*
is a mean of logarithms, in which an update of several facts weighs up to three times as much: one bad fact
does not spoil the others. An update of few changes is tried unless they are more than half of what there
is, if only for a short time.

Of an update that was abandoned, the next one like it is expected to take what was foreseen of it, and half as
long again as it had taken at least. If it is tried nevertheless and comes to an end, what it takes replaces
that. Where only updates of another size tell, and all of these were abandoned, an update is tried only if it
should take less than recomputing. Each time that recomputing is taken at once, updates like the one that was
not tried seem a little cheaper, so that they are tried again some time. Of few changes, as long as no update
has come to an end, the second is given more time than the first, and after it one in eight far more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import exp, log

# What few changes may take, as shares of recomputing
FEW_SHARE = 0.07  # usually
GLANCE_SHARE = 0.04  # where too much is expected of them: the next fact may well be cheap
MOST_SHARE = 0.15  # with indexes: a fifth (docs/maintenance.md), less what noise adds
WORTHWHILE = 0.35  # where they often take so long, this may be expected of them,
WORTH_SHARE = 0.4  # and they may take this. As long as none has come to an end, so much is also given
AGAIN = 8  # to each update after so many that were abandoned,
PROBE_SHARE = 0.16  # and so much to the second of them

# What many changes may take, as shares of recomputing
FIRST_SHARE = 0.08  # where their size is not known
KNOWN_SHARE = 0.2  # the least where it is
BEARABLE = 1.0  # what may be expected of them where their size is known
FAR = 3.0  # the same where only updates of other sizes tell

# What any update may take, in seconds
LEAST_SECONDS = 0.01  # several changes, if this is not more than a fifth of recomputing
ANYWAY_SECONDS = 0.002  # in any case
DROPPED_SECONDS = 0.002  # what one costs besides if it is dropped: a single change has so much less

# What is expected of an update
RECENT = 0.2  # the weight of the newest change in what a change has cost of late
MOST_WEIGHT = 3  # an update of more changes weighs no more than so many
MANY = 16  # changes whose costs even out
ADDING = 4.0  # times its share of the tuples, as a share of recomputing: what an update takes that only adds
INVESTED = 0.5  # of what missing indexes take: the part that is not for later updates
LEEWAY = 2.0  # times what is expected of an update: what it may take, within the shares above
DEARER = 1.5  # what an abandoned update would have cost at least, against what it has
DECISIVE = 0.5  # of recomputing: an update that was given so much, and given up, is far too dear
TOO_DEAR = 6.0  # times recomputing: what is expected then
FORGIVING = 0.85  # each time that recomputing is taken, an update seems so much cheaper: it is tried again

# What the machine does in a second
SPEED = 8_000_000.0  # tuples derived, or looked at
SLOWEST, FASTEST = SPEED / 8, SPEED * 8  # what is measured beyond was a machine that did something else
FALLING = 1_000_000.0  # tuples that an update takes away, at most
COMPARED = 80_000_000.0  # tuples compared with those before
INDEXED = 20_000_000.0  # tuples put into indexes


@dataclass
class Rate:
    """What updates of a size have cost of late, in seconds for each change below."""

    each: float
    unended: bool = False  # whether none of them came to an end
    abandoned: int = 0  # how many have not, since one did
    guessed: bool = False  # whether there was none


@dataclass(frozen=True)
class Allowance:
    """What an update may take, in seconds.

    An update, or a phase of it that takes up its changes in portions, has `least` before anything is foreseen
    of it. Then `most` is what it may still need.
    """

    least: float
    most: float = 0.0


@dataclass
class Past:
    """What is remembered of a stratum. Losses and gains have rates of their own, by size of updates."""

    full: float  # seconds of the last recomputing
    tuples: int | None = None  # that the stratum had after it; None until the next commit
    compared: bool = True  # whether they were compared with those before; else that time is added then
    after: float = 0.0  # seconds that making the indexes of updates takes where it left none behind
    missing: bool = True  # whether they are missing
    losing: bool = True  # whether recomputing left none behind the last time
    lost: dict[int, Rate] = field(default_factory=dict)
    gained: dict[int, Rate] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)  # of updates of a size, where rounds cost

    def whole(self, tuples: int) -> float:
        """The seconds that recomputing should take, now that there are so many tuples."""
        if self.tuples is None:
            self.tuples = tuples
            if not self.compared:
                self.full, self.compared = self.full + tuples / COMPARED, True
        return self.full + max(0, tuples - self.tuples) / SPEED

    def knows(self, lost: int, gained: int) -> bool:
        """Whether there was an update of that size, or recomputing tells what one should take."""
        at = size(lost + gained)
        return (not lost or at in self.lost) and (not gained or at in self.gained)

    def expected(self, lost: int, gained: int) -> float | None:
        """The seconds that an update should take, by those of the nearest size; None: there were none."""
        at, expected = size(lost + gained), 0.0
        for changes, rates in ((lost, self.lost), (gained, self.gained)):
            rate = _nearest(rates, at)
            if changes and rate is None:
                return None
            expected += 0.0 if rate is None else changes * rate.each
        return expected

    def allowed(self, full: float, expected: float | None, lost: int, gained: int) -> Allowance | None:
        """What an update may take; None where recomputing, in `full`, is to be preferred."""
        expected = expected or 0.0
        if lost + gained < MANY:
            alone = lost + gained == 1
            usual = self._allowed_few(
                full, expected, FEW_SHARE * full - (DROPPED_SECONDS if alone else 0.0), lost
            )
            least = 0.0 if alone else min(LEAST_SECONDS, KNOWN_SHARE * full)
            return Allowance(max(usual, least, ANYWAY_SECONDS))
        known = self.knows(lost, gained)
        whole = full + (self.after if self.losing else 0.0)
        if self.missing:
            whole = max(0.0, full - INVESTED * self.after)
        bearable = BEARABLE if known or self._doubtful(lost, gained) else FAR
        if expected > max(bearable * whole, LEAST_SECONDS):
            return None
        if not known:
            return Allowance(max(FIRST_SHARE * full, ANYWAY_SECONDS), whole)
        most, least = max(full, whole), KNOWN_SHARE * full
        if self._measured(lost, gained):
            least = max(least, min(LEEWAY * expected, most))
        return Allowance(max(least, ANYWAY_SECONDS), most)

    def _allowed_few(self, full: float, expected: float, usual: float, lost: int) -> float:
        """The seconds that few changes may take, once the indexes that are missing are made."""
        indexes = self.after if self.missing else 0.0
        usual = max(min(usual, MOST_SHARE * full - indexes), GLANCE_SHARE * full)
        rate = (self.lost if lost else self.gained).get(size(1))
        if rate is not None and rate.unended:
            if rate.abandoned % AGAIN == 0:
                return WORTH_SHARE * full
            return max(usual, PROBE_SHARE * full) if rate.abandoned == 1 else GLANCE_SHARE * full
        if expected > WORTHWHILE * full:
            return GLANCE_SHARE * full
        return max(usual, min(LEEWAY * expected, WORTH_SHARE * full))

    def made_ready(self, seconds: float) -> None:
        """The indexes of updates are there; what was missing of them has taken so long to make."""
        self.after, self.missing = max(seconds, FORGIVING * self.after), False

    def _measured(self, lost: int, gained: int) -> bool:
        """Whether some update of that size came to an end; losses tell, if there are any."""
        rate = (self.lost if lost else self.gained)[size(lost + gained)]
        return not rate.unended and not rate.guessed

    def _doubtful(self, lost: int, gained: int) -> bool:
        """Whether all updates of the nearest size had to be abandoned; losses tell, if there are any."""
        rate = _nearest(self.lost if lost else self.gained, size(lost + gained))
        return rate is not None and rate.unended

    def leaves_time(self, spent: float) -> bool:
        """Whether few changes leave the time to make indexes at once, with so much spent in vain."""
        return spent + self.after <= MOST_SHARE * self.full

    def learn(self, lost: int, gained: int, work: int, seconds: float, *, at_least: bool = False) -> None:
        """An update has looked at so many tuples in so long, or would have taken so long at least."""
        changes, at = max(1, lost + gained), size(lost + gained)
        each = min(max(seconds, max(1, work) / FASTEST), max(1, work) / SLOWEST) / changes
        for rates, concerned in ((self.lost, lost > 0), (self.gained, gained > 0)):
            before = rates.get(at)
            if not concerned or (rates is self.gained and lost and before):  # losses are what costs most
                continue
            if before is None or (not at_least and (before.unended or before.guessed)):
                rates[at] = Rate(each, unended=at_least, abandoned=int(at_least))
            elif at_least:
                times = 1 if changes < MANY and not before.unended else MANY
                dearer = mean(before.each, max(each, before.each), times)
                rates[at] = Rate(dearer, before.unended or before.guessed, abandoned=before.abandoned + 1)
            else:
                rates[at] = Rate(mean(before.each, each, min(changes, MOST_WEIGHT)))

    def give_up(
        self, lost: int, gained: int, work: int, seconds: float, foreseen: float, *, decisive: bool
    ) -> None:
        """An update was abandoned that should have taken so long; `decisive`: it is far too dear."""
        dearer = max(DEARER, foreseen / seconds if seconds else 0.0)
        if decisive:  # the like is recomputed at once, for some time
            dearer = max(dearer, TOO_DEAR * self.full / seconds)
        self.learn(lost, gained, int(dearer * work), dearer * seconds, at_least=True)

    def guess(self, changes: int, moved: int, tuples: int) -> None:
        """Recomputing for so many changes has moved some of all tuples; what an update should take."""
        adding, losing = ADDING * self.full * moved / max(1, tuples), moved / FALLING
        for rates, took in ((self.gained, adding), (self.lost, losing)):
            rates.setdefault(size(changes), Rate(max(took, 1 / FASTEST) / max(1, changes), guessed=True))

    def hope(self, lost: int, gained: int) -> None:
        """An update of so many changes was not tried: it may have become cheaper meanwhile."""
        at = size(lost + gained)
        for changes, rates in ((lost, self.lost), (gained, self.gained)):
            rate = _nearest(rates, at)
            if changes and rate is not None and (at in rates or rate.unended):
                rate.each *= FORGIVING


def _nearest(rates: Mapping[int, Rate], at: int) -> Rate | None:
    if at in rates or not rates:
        return rates.get(at)
    return rates[min(rates, key=lambda other: abs(other - at))]


def size(changes: int) -> int:
    """The size of an update, by factors of four; all of few changes are alike."""
    return 0 if changes < MANY else changes.bit_length() // 2


def mean(old: float, new: float, times: int) -> float:
    """The newest of many, weighed in as if it had come so many times, on a logarithmic scale."""
    keep = (1 - RECENT) ** times
    return exp(keep * log(old) + (1 - keep) * log(new))
