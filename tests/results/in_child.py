"""What tests run in the process that reads files; it imports this module, so it loads nothing large."""

import os
import signal
import sys


def crash(path):
    os.kill(os.getpid(), signal.SIGSEGV)


def succeed(path):
    sys.stdout.write("a library prints\n")


def loop(path):
    while True:
        pass
