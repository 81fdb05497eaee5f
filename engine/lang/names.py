"""The vector and matrix types that have names: `vec3`, `mat44d`, `quat`, `spatial_vector`, ..."""

from __future__ import annotations

from typing import Any

from engine.lang import types as t
from engine.lang.vectors import vector_class


def _vectors(s: t.ScalarType) -> tuple[Any, Any, Any]:
    return tuple(vector_class(t.VectorType(s, n)) for n in (2, 3, 4))  # type: ignore[return-value]


def _matrices(s: t.ScalarType) -> tuple[Any, Any, Any]:
    return tuple(vector_class(t.MatrixType(s, n, n)) for n in (2, 3, 4))  # type: ignore[return-value]


vec2b, vec3b, vec4b = _vectors(t.INT8)
vec2ub, vec3ub, vec4ub = _vectors(t.UINT8)
vec2s, vec3s, vec4s = _vectors(t.INT16)
vec2us, vec3us, vec4us = _vectors(t.UINT16)
vec2i, vec3i, vec4i = _vectors(t.INT32)
vec2ui, vec3ui, vec4ui = _vectors(t.UINT32)
vec2l, vec3l, vec4l = _vectors(t.INT64)
vec2ul, vec3ul, vec4ul = _vectors(t.UINT64)
vec2h, vec3h, vec4h = _vectors(t.FLOAT16)
vec2f, vec3f, vec4f = _vectors(t.FLOAT32)
vec2d, vec3d, vec4d = _vectors(t.FLOAT64)
vec2, vec3, vec4 = vec2f, vec3f, vec4f

mat22h, mat33h, mat44h = _matrices(t.FLOAT16)
mat22f, mat33f, mat44f = _matrices(t.FLOAT32)
mat22d, mat33d, mat44d = _matrices(t.FLOAT64)
mat22i, mat33i, mat44i = _matrices(t.INT32)
mat22, mat33, mat44 = mat22f, mat33f, mat44f

_FLOATS = (t.FLOAT16, t.FLOAT32, t.FLOAT64)
quath: Any
quath, quatf, quatd = (vector_class(t.quat_type(s)) for s in _FLOATS)
transformh: Any
transformh, transformf, transformd = (vector_class(t.transform_type(s)) for s in _FLOATS)
spatial_vectorh: Any
spatial_vectorh, spatial_vectorf, spatial_vectord = (
    vector_class(t.VectorType(s, 6)) for s in _FLOATS
)
spatial_matrixh: Any
spatial_matrixh, spatial_matrixf, spatial_matrixd = (
    vector_class(t.MatrixType(s, 6, 6)) for s in _FLOATS
)
quat, transform = quatf, transformf
spatial_vector, spatial_matrix = spatial_vectorf, spatial_matrixf

__all__ = [
    "vec2", "vec3", "vec4",
    "vec2b", "vec3b", "vec4b", "vec2ub", "vec3ub", "vec4ub",
    "vec2s", "vec3s", "vec4s", "vec2us", "vec3us", "vec4us",
    "vec2i", "vec3i", "vec4i", "vec2ui", "vec3ui", "vec4ui",
    "vec2l", "vec3l", "vec4l", "vec2ul", "vec3ul", "vec4ul",
    "vec2h", "vec3h", "vec4h", "vec2f", "vec3f", "vec4f", "vec2d", "vec3d", "vec4d",
    "mat22", "mat33", "mat44", "mat22h", "mat33h", "mat44h", "mat22f", "mat33f", "mat44f",
    "mat22d", "mat33d", "mat44d", "mat22i", "mat33i", "mat44i",
    "quat", "quath", "quatf", "quatd", "transform", "transformh", "transformf", "transformd",
    "spatial_vector", "spatial_vectorh", "spatial_vectorf", "spatial_vectord",
    "spatial_matrix", "spatial_matrixh", "spatial_matrixf", "spatial_matrixd",
]  # fmt: skip
