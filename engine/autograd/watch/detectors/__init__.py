"""The detectors of the monitor: each module of this folder is one, with the fact that it finds.

A new one is a module with a subclass of `Detector`, and one of `Fact` unless a fact exists for what
it finds. Detectors get each event in the order of the names of their modules.
"""
