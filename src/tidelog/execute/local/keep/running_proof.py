"""A sweep guarded by backward chaining, compiled; `proof` has the chaining itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tidelog.execute.local import memory
from tidelog.execute.local.keep import layout as at
from tidelog.execute.local.keep import proof as kernels
from tidelog.execute.local.keep.tasks import Running
from tidelog.execute.local.memory import Words
from tidelog.plan.executor import Watch
from tidelog.plan.maintenance import PhaseReport, Proof, Sweep

if TYPE_CHECKING:
    from tidelog.execute.local.keep.keeper import LocalKeeper


class RunningProof(Running):
    """A sweep whose guard keeps what can be proved."""

    def __init__(self, keeper: LocalKeeper, task: Sweep) -> None:
        super().__init__(keeper, task.relations)
        guard = task.guard
        assert isinstance(guard, Proof)
        self.task = task
        self.depth = -1 if guard.depth is None else guard.depth
        self.seeds, _ = self.group(task.seeds)
        self.forms, self.owners = self.group(task.forms)
        self.deleting = len(self.code.rules)
        self.base, self.base_owners = self.group(guard.base, backward=True)
        self.back, self.back_owners = self.group(guard.recursive, backward=True)
        self.checking = len(self.code.rules)
        self.forward, self.forward_owners = self.group(guard.forward)
        self.finish()
        self.left: Words = np.zeros(at.LIST_CAPACITY + 1, np.int64)

    def reset(self, budget: int | None) -> None:
        """Be ready to run from the beginning."""
        super().reset(budget)
        run, registers, steps = self.run, self.code.registers + 1, self.code.steps + 1
        run[at.R_DEPTH] = run[at.R_LEFT_AT] = 0
        run[at.R_LIMIT] = self.depth
        run[at.R_FRAME_WORDS] = kernels.P_CURSOR + at.C_WORDS + registers + (at.STACK_WORDS + 2) * steps + 1
        run[at.R_PROOF] = kernels.IDLE
        run[at.R_LEFT] = self.left.ctypes.data
        self.left[at.LIST_COUNT] = 0

    def __call__(self, watch: Watch) -> None:
        """Sweep."""
        parts, task = self.keeper.workshop.parts, self.task
        start, reach = parts.address(task.start), parts.address(task.reach)
        try:
            self.drive(
                lambda: int(
                    kernels.sweep_proof(
                        self.own, self.place, self.seeds, self.forms, self.owners, self.base,
                        self.base_owners, self.back, self.back_owners, self.forward, self.forward_owners,
                        start, reach, int(task.settle), self.address, self.code.registers + 1,
                        self.code.steps + 1,
                    )
                ),
                watch,
            )  # fmt: skip
        finally:
            memory.free(int(self.run[at.R_FRAMES]))
            memory.free(int(self.left[at.LIST]))
            self.run[at.R_FRAMES] = self.run[at.R_FRAME_ROOM] = 0
            self.left[:] = 0

    def report(self, phase: str, touched: int) -> PhaseReport:
        """What the run did, with the kinds of instances told apart."""
        report = super().report(phase, touched)
        report.details = {
            "deletion": int(self.counted[: self.deleting].sum()),
            "backward": int(self.counted[self.deleting : self.checking].sum()),
            "forward": int(self.counted[self.checking :].sum()),
        }
        return report
