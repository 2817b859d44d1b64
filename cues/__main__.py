"""`python -m cues` is the `cues` command."""

from cues.cli import main

main()
