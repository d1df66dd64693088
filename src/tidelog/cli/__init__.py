"""The command line: `tidelog run`, `check` and `plan`."""
