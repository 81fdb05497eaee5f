"""What the pytest plugin does, loaded when something of it is used. See `adtool.pytest_plugin`."""
