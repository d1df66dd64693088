"""Make the parser's tables from the grammar: `python -m tidelog.syntax.generate`.

Lark reads `grammar.lark` and works out the LALR(1) tables; what the parser needs of
them is written to `_tables.py`. So a program is parsed without importing Lark,
and start-up costs a few milliseconds; Lark is needed only to change the language.
"""

from __future__ import annotations

import json
from pathlib import Path

HERE = Path(__file__).parent
GRAMMAR = HERE / "grammar.lark"
TABLES = HERE / "_tables.py"

HEADER = '''\
"""The parser's tables, made from grammar.lark by `python -m tidelog.syntax.generate`. Do not edit."""

TABLES = r"""
'''


def tables() -> dict[str, object]:
    """The tables of the grammar, as data that JSON can hold.

    - symbols: names of terminals, then of nonterminals; everything else is by number;
    - terminals: number of terminals;
    - patterns: (terminal, regular expression), in the order in which they are tried;
    - keywords: word -> terminal;
    - rules: (nonterminal, length, action, children that are passed on, those to be spliced in);
    - states: for each state a list of (symbol, action): a state to go to, or -1-rule to reduce by.
    """
    from lark import Lark
    from lark.parsers.lalr_analysis import Shift

    lark = Lark(GRAMMAR.read_text(encoding="utf-8"), parser="lalr", lexer="basic", maybe_placeholders=False)
    table = lark.parser.parser._parse_table
    rows = table.states
    symbols = sorted({name for row in rows.values() for name in row})
    is_rule = {rule.origin.name for rule in lark.rules}
    symbols.sort(key=lambda name: name in is_rule)
    symbols += sorted(is_rule - set(symbols))
    number = {name: i for i, name in enumerate(symbols)}

    patterns: list[tuple[int, str]] = []
    keywords: dict[str, int] = {}
    used = sorted((t for t in lark.terminals if t.name in number), key=lambda t: t.name)
    for terminal in sorted(used, key=lambda t: (-t.priority, -len(t.pattern.value))):
        if terminal.pattern.type == "str" and terminal.pattern.value.isidentifier():
            keywords[terminal.pattern.value] = number[terminal.name]
        else:
            patterns.append((number[terminal.name], terminal.pattern.to_regexp()))

    ordered = sorted(lark.rules, key=lambda rule: (rule.origin.name, [s.name for s in rule.expansion]))
    order = {rule: i for i, rule in enumerate(ordered)}
    rules = []
    for rule in ordered:
        kept = [
            i
            for i, symbol in enumerate(rule.expansion)
            if rule.options.keep_all_tokens or not getattr(symbol, "filter_out", False)
        ]
        spliced = [i for i in kept if rule.expansion[i].name.startswith("_")]
        name = rule.alias or rule.origin.name
        if name.startswith("_"):
            action = "_item" if name == "_item" else "_list"
        elif rule.alias is None and rule.options.expand1 and len(rule.expansion) == 1:
            action = ""  # pass the only child on
        else:
            action = name
        rules.append([number[rule.origin.name], len(rule.expansion), action, kept, spliced])
    # Lark numbers states differently on each run; number them as a walk from the start finds them.
    ids = {table.start_states["start"]: 0}
    for state in (queue := list(ids)):
        for _, (kind, target) in sorted(rows[state].items()):
            if kind is Shift and target not in ids:
                ids[target] = len(ids)
                queue.append(target)
    states = [
        sorted(
            [number[name], ids[to] if kind is Shift else -1 - order[to]]
            for name, (kind, to) in rows[state].items()
        )
        for state in ids
    ]
    return {
        "symbols": symbols,
        "terminals": sum(name not in is_rule for name in symbols),
        "names": {t.name: t.pattern.value for t in used if t.pattern.type == "str"},
        "patterns": patterns,
        "keywords": keywords,
        "rules": rules,
        "states": states,
        "start": 0,
        "end": ids[table.end_states["start"]],
    }


def render() -> str:
    """The text of `_tables.py`."""
    parts = []
    for key, value in tables().items():
        text = f"{json.dumps(key)}: {json.dumps(value, separators=(',', ':'))}"
        parts.append("\n".join(text[i : i + 108] for i in range(0, len(text), 108)))
    return HEADER + "{\n" + ",\n".join(parts) + '\n}\n"""\n'


if __name__ == "__main__":
    TABLES.write_text(render(), encoding="utf-8")
