"""Scripts in DDlog's command language (`.dat`): read as they come, and records written its way.

    start;
    insert Edge(1, 2), insert Edge(.from = 2, .to = 3);
    commit dump_changes;                                     Path{.from = 1, .to = 3}: +1

`script` holds the text while it arrives, `items` reads and writes values, `commands` reads
commands, `bind` makes rows of a relation out of them.
"""
