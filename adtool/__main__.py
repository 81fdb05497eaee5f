"""The way in: `adtool`, and `python -m adtool`."""

from adtool import interrupts


def main() -> None:
    """Runs the tool, and exits with one of `Exit`."""
    interrupts.install()  # before anything that takes a while is imported
    from adtool.cli import main as run

    try:
        run()
    finally:
        interrupts.over()


if __name__ == "__main__":
    main()
