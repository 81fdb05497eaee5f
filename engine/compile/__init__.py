"""Converts IR functions to callable code: passes, compiler, cache."""
