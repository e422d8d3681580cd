"""Tests that want a browser."""

import shutil

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# `make test` installs Chromium where it may; elsewhere test_write.py and test_notebook_output.py read the same output.
browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here; make browser installs it")
