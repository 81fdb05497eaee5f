"""Optimizers of arrays."""

from __future__ import annotations

from engine.optim.descent import SGD, Adam

__all__ = ["SGD", "Adam"]
