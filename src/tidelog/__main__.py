"""`python -m tidelog` is the command `tidelog`."""

from tidelog.cli.main import main

main()
