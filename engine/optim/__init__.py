"""Optimizers of arrays, and solvers of linear systems (`engine.optim.linear`)."""

from __future__ import annotations

from engine.optim import linear
from engine.optim.descent import SGD, Adam

__all__ = ["SGD", "Adam", "linear"]
