"""`python -m headscope` is the shell command."""

from headscope.cli.main import run

run()
