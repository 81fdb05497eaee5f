"""Entry point of `adtool` and of `python -m adtool`."""

from adtool import paths


def main() -> None:
    """Runs the tool, and exits with one of `Exit`."""
    paths.programs_last()
    from adtool import interrupts

    interrupts.install()  # before anything that takes a while is imported
    from adtool.cli import main as run

    try:
        run()
    finally:
        interrupts.over()


if __name__ == "__main__":
    main()
