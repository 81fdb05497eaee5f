"""The language reference, made from the registry of builtins."""
