"""The solvers' steps, as generators: each gives how long the residual of each system is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from engine.runtime import events
from engine.runtime.array import array
from engine.utils.common import NumpyArray

Product = Callable[[NumpyArray], NumpyArray]


class System:
    """A x = b in float64 on the host; products are made in the arrays' own type.

    x: the solution so far. offsets: where independent systems begin, and the last one ends.
    """

    def __init__(self, A: Any, M: Any, b: array, x: array, offsets: NumpyArray | None) -> None:
        self.b = b._host().astype(np.float64).reshape(-1)
        self.x = x._host().astype(np.float64).reshape(-1)
        self._in = array._allocate(b.shape, b._ir.element, True, b.device)
        self._out = array._allocate(b.shape, b._ir.element, True, b.device)
        self.multiply = self._product(A)
        self.precondition = (lambda v: v) if M is None else self._product(M)
        size = self.b.size
        if offsets is None:
            offsets = np.array([0, size])
        self.count = len(offsets) - 1
        # Which system a scalar belongs to; those behind the last are in none.
        self._of = np.full(size, self.count)
        self._of[: offsets[-1]] = np.repeat(np.arange(self.count), np.diff(offsets))
        self._inside = self._of < self.count

    def _product(self, op: Any) -> Product:
        def product(v: NumpyArray) -> NumpyArray:
            for a, values in ((self._in, v), (self._out, np.zeros(1))):
                a.storage.before_write(a.lo, a.hi)
                a._put(values.reshape(a._parts.shape) if values.size != 1 or a._parts.size == 1
                       else values[0])  # fmt: skip
            token = events.pause_tapes()  # the solution's gradient is that of the system
            try:
                op.matvec(self._in, self._out, self._out, 1.0, 0.0)
            finally:
                events.resume_tapes(token)
            found: NumpyArray = self._out._host().astype(np.float64).reshape(-1)
            return self._masked(found)

        return product

    def _masked(self, v: NumpyArray) -> NumpyArray:
        out: NumpyArray = np.where(self._inside, v, 0.0)
        return out

    def dot(self, a: NumpyArray, b: NumpyArray) -> NumpyArray:
        """The inner product within each system."""
        return np.bincount(self._of, a * b, self.count + 1)[: self.count]

    def spread(self, each: NumpyArray) -> NumpyArray:
        """A number for each system as one for each scalar."""
        out: NumpyArray = np.append(each, 0.0)[self._of]
        return out

    def norms(self, v: NumpyArray) -> NumpyArray:
        """The length of a vector within each system."""
        return np.sqrt(self.dot(v, v))

    def residual(self) -> NumpyArray:
        """b - A x."""
        return self._masked(self.b) - self.multiply(self.x)


def _over(a: NumpyArray, b: NumpyArray) -> NumpyArray:
    """a / b; 0 where b is 0, as for systems that are solved."""
    return np.divide(a, b, out=np.zeros_like(a), where=b != 0.0)


def cg(s: System, restart: int | None) -> Iterator[NumpyArray]:
    """Conjugate gradients."""
    while True:
        r = s.residual()
        z = p = s.precondition(r)
        rz = s.dot(r, z)
        yield s.norms(r)
        step = 0
        while restart is None or step < restart:
            q = s.multiply(p)
            alpha = s.spread(_over(rz, s.dot(p, q)))
            s.x = s.x + alpha * p
            r = r - alpha * q
            z = s.precondition(r)
            before, rz = rz, s.dot(r, z)
            p = z + s.spread(_over(rz, before)) * p
            step += 1
            if restart is None:
                yield s.norms(r)


def cr(s: System, restart: int | None) -> Iterator[NumpyArray]:
    """Conjugate residuals."""
    while True:
        r = s.residual()
        z = p = s.precondition(r)
        az = ap = s.multiply(z)
        rho = s.dot(z, az)
        yield s.norms(r)
        step = 0
        while restart is None or step < restart:
            y = s.precondition(ap)
            alpha = s.spread(_over(rho, s.dot(ap, y)))
            s.x = s.x + alpha * p
            r, z = r - alpha * ap, z - alpha * y
            az = s.multiply(z)
            before, rho = rho, s.dot(z, az)
            beta = s.spread(_over(rho, before))
            p, ap = z + beta * p, az + beta * ap
            step += 1
            if restart is None:
                yield s.norms(r)


def bicgstab(s: System, left: bool) -> Iterator[NumpyArray]:
    """Stabilised biconjugate gradients."""
    r = s.residual()
    shadow = p = r
    rho = s.dot(shadow, r)
    yield s.norms(r)
    while True:
        y = s.precondition(p)
        v = s.multiply(y)
        length = _over(rho, s.dot(shadow, v))
        alpha = s.spread(length)
        half = r - alpha * v
        z = s.precondition(half)
        t = s.multiply(z)
        u, w = (s.precondition(t), z) if left else (t, half)
        each = _over(s.dot(u, w), s.dot(u, u))
        omega = s.spread(each)
        s.x = s.x + alpha * y + omega * z
        r = half - omega * t
        before, rho = rho, s.dot(shadow, r)
        beta = _over(rho, before) * _over(length, each)
        p = r + s.spread(beta) * (p - omega * v)
        yield s.norms(r)


def gmres(s: System, restart: int, left: bool) -> Iterator[NumpyArray]:
    """Minimal residuals in Krylov spaces, begun again after `restart` products."""
    while True:
        r = s.residual()
        yield s.norms(r)
        if left:
            r = s.precondition(r)
        beta = s.norms(r)
        basis, used = [r * s.spread(_over(np.ones_like(beta), beta))], []
        h = np.zeros((s.count, restart + 1, restart))
        for k in range(restart):
            z = basis[k] if left else s.precondition(basis[k])
            w = s.precondition(s.multiply(z)) if left else s.multiply(z)
            used.append(z)
            for _ in range(2):  # twice is enough
                for j, v in enumerate(basis):
                    along = s.dot(v, w)
                    h[:, j, k] += along
                    w = w - s.spread(along) * v
            size = s.norms(w)
            h[:, k + 1, k] = size
            # What is left of a space that is complete is rounding.
            small = size <= 1e-14 * np.abs(h[:, :, k]).max(axis=1)
            h[small, k + 1, k] = 0.0
            size = np.where(small, 0.0, size)
            basis.append(w * s.spread(_over(np.ones_like(size), size)))
        for n in range(s.count):
            y = np.linalg.lstsq(h[n], np.r_[beta[n], np.zeros(restart)], rcond=1e-14)[0]
            only = np.zeros(s.count)
            only[n] = 1.0
            mask = s.spread(only)
            for c, z in zip(y, used, strict=True):
                s.x = s.x + c * mask * z
