"""The command line: `tidelog run`, `check`, `plan` and `shell`."""
