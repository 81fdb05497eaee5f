"""Converts IR to native source text: one C-style emitter, one table for each language."""
