"""The sample repository is run by `test_gate.py`; its own tests are not tests of adtool."""

collect_ignore = ["repository"]
