"""Adjoint beside reference: what a tolerance allows, and the verdict."""
