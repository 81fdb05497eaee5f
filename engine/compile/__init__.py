"""From IR functions to code that can be called: passes, compiler, cache."""
