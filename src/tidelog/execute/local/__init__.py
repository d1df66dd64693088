"""The local executor: relations in this process, rules as compiled kernels.

From the outside in: `executor` (the seam), `fixpoint` (tasks, rounds, threads),
`assemble` (plan -> code for the rule interpreter), `columns`, `expressions`, `groups`
(what the interpreter does not do), `relation`, `codes`, `statistics` (what is stored).

Kernels, over `memory` laid out as `layout` says: `tupleset` (the set of rows), `index`,
`join` and `insert` (the rule interpreter, and what it derives), `rounds` (fixpoints), `probes`
(many look-ups at once).
"""
