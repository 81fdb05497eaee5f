"""Finds how the threads of a launch share elements: which thread accesses which, and how."""

from engine.ad.threads.affine import Given
from engine.ad.threads.certain import clashes
from engine.ad.threads.classify import Classes, Group, classify
from engine.ad.threads.collect import Access, Collected, collect
from engine.ad.threads.fills import fills
from engine.ad.threads.reach import Box, reach

__all__ = ["Access", "Box", "Classes", "Collected", "Given", "Group", "clashes", "classify",
           "collect", "fills", "reach"]  # fmt: skip
