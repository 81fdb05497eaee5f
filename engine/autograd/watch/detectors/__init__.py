"""The detectors of the monitor: each module of this folder is one, with the fact that it finds."""
