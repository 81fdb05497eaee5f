"""The parts of the pytest plugin that are loaded when used (`adtool.pytest_plugin`)."""
