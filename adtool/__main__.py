"""`python -m adtool` is `adtool`."""

from adtool.cli import main

if __name__ == "__main__":
    main()
