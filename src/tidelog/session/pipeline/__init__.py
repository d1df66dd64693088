"""Pipelines: a program, what it reads and what it writes, in one YAML file.

| file          | is about                                                             |
|---------------|----------------------------------------------------------------------|
| `document.py` | YAML as values that know where they stand, and what is wrong there   |
| `model.py`    | what a pipeline says, and reading it                                 |
| `check.py`    | whether program, sources and sinks go together, and what they hold   |
| `work.py`     | running one: as a batch, over what is new, or for as long as it may  |
"""
