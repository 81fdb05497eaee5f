"""Lowers whole functions: rounds, parameters, instances, custom gradients, native code."""
