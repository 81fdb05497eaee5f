"""Entry point of `adtool` and of `python -m adtool`."""

import sys

from adtool import paths

_RUNNING = [["check"], ["trace"], ["graph"], ["jacobian"], ["show"], ["capture"]]
_ASIDE = frozenset(("--help", "--version"))


def main() -> None:
    """Runs the tool, and exits with one of `Exit`."""
    paths.programs_last()
    from adtool import interrupts

    interrupts.install()  # before anything that takes a while is imported
    from adtool import dependencies, starter, streams, teardown

    streams.occupy()  # else what is opened next would be taken for a stream that is closed
    # What runs a script starts a process that takes as long to load the tool as this one does.
    running = sys.argv[1:2] in _RUNNING and not _ASIDE.intersection(sys.argv)
    if running and dependencies.is_there(dependencies.ENGINE):
        starter.start_early()

    try:
        try:
            from adtool.cli import main as run
        except ModuleNotFoundError as error:
            if not (name := dependencies.missing(error)):
                raise
            message, help = dependencies.words(name)
            sys.stderr.write(f"error: {message}: {help}\n")
            sys.exit(2)  # of `Exit`: FAILURE
        run()
    finally:
        starter.end_early()
        interrupts.over()
        teardown.keep(sys.modules.values())


if __name__ == "__main__":
    main()
