"""``python -m chainscout``."""

from .cli import main

main(prog_name="chainscout")
