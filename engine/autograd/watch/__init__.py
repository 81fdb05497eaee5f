"""Watches programs while they run: what is wrong between launches, told as facts."""
