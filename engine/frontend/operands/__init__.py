"""The kinds of expressions during lowering.

A value of the IR, a Python object, a struct of operands, or a view of an array. `kinds` takes
operands apart into a static kind and atoms, and puts them together again.
"""
