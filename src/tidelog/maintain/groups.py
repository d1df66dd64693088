"""Aggregates: one row for each group, and only groups that changed are looked at again.

Not from the papers, which have no aggregates. An aggregate is a relation of its own, alone in its
stratum (decision 0004), over the rows of one source relation.

    Groups(rule, source)
    1  to start: go through the source and compute every group
    2  in a commit: the groups of the rows that the source has lost and gained are
       the ones that can have changed
    3  for each of them: if it had rows before, its old result is deleted; if it has rows
       now, its new result is added; where both are equal, nothing changes

How step 3 finds the new result is the executor's affair: count and sum can be corrected by the
difference, the least and the greatest value of a group need its rows when they are lost.

| above           | here                                                |
|-----------------|-----------------------------------------------------|
| rule, source    | `AggregateRule`, its `source`                       |
| step 1          | `Group`, within `Keeper.renew`                      |
| steps 2 and 3   | `Regroup`                                           |

A change of the rule is a change of the relation: the rewrite that makes aggregates gives each of
them a name of its own. Should the rule of a name change all the same, the stratum is started
anew.
"""

from __future__ import annotations

from tidelog.maintain.protocol import Phases, StratumChange
from tidelog.maintain.seminaive import fill
from tidelog.plan.executor import Watch
from tidelog.plan.maintenance import Keeper, PhaseReport, Regroup
from tidelog.program.model import Stratum


class Groups:
    """Keeps an aggregate current, group by group."""

    name = "regroup"
    state = "groups"

    def start(self, stratum: Stratum, keeper: Keeper, watch: Watch) -> list[PhaseReport]:
        """Step 1."""
        return fill(stratum, keeper, watch)

    def update(
        self, change: StratumChange, keeper: Keeper, watch: Watch, budget: int | None
    ) -> list[PhaseReport]:
        """Steps 2 and 3."""
        aggregate = change.stratum.aggregate
        assert aggregate is not None, "only a stratum with an aggregate is given to Groups"
        tasks = change.once(self.name, lambda: (Regroup(aggregate, phase="regroup"),))
        return Phases(keeper, watch, budget).run(*tasks)
