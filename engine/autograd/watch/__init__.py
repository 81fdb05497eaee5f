"""Watches programs while they run, and notes faults between launches as facts."""
