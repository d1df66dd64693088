"""The reference executor: rules evaluated by substitution, over Python sets."""
