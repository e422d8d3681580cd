"""One browser for each file of tests, with a page that is opened again and again."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.viewer.pages import Shown, launch, open_tab


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with launch() as browser:
        yield browser


@pytest.fixture(scope="module")
def shown(chromium: Browser) -> Shown:
    return open_tab(chromium)
