"""Text and trees: the grammar, the parser with its diagnostics, and the printer.

`parser.parse` turns text into the tree of `ast.py`, `printer.print_module` turns it
back. `grammar.lark` is the reference of the language.
"""
