"""`python -m cues` and the script `cues`: the command, with Ctrl-C handled from its first import on."""

import sys


def main() -> None:
    """Run the command line; see `cues.cli.main`."""
    try:
        from cues.cli import main as run

        run()
    except KeyboardInterrupt:  # `run` handles all later ones
        print("cues: interrupted", file=sys.stderr)  # noqa: T201  (click may not be there yet)
        sys.exit(130)


if __name__ == "__main__":  # worker processes import this file again
    main()
