"""Ask the site of the docs the questions of a newcomer: how many clicks, or which result of a search, answers each.

    make docs
    python tools/ask_docs.py

The questions are in docs/questions.md, each with the section that answers it and, in italics, the words to search for.
The site is opened from the disk, in Chromium, without a network.
"""

import re
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).parents[1]
LINE = re.compile(r"^\d+\. (.*) \[(.*)\]\((.*)\.md(#.*)?\)$", re.MULTILINE)


@dataclass(frozen=True)
class Answer:
    """What it took to come from the first page to the section that answers a question."""

    question: str
    section: str
    clicks: tuple[str, ...]
    click_seconds: float
    words: str
    result: int | None
    search_seconds: float


def ask(site: Path) -> Iterator[Answer]:
    """Yield the answers to all questions."""
    questions = LINE.findall((ROOT / "docs" / "questions.md").read_text(encoding="utf-8"))
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"))
        page = browser.new_context(offline=True, viewport={"width": 1440, "height": 900}).new_page()
        first = (site / "index.html").as_uri()
        for question, title, target, anchor in questions:
            words = " ".join(re.findall(r"\*(.+?)\*", question))
            page.goto(first)
            page.wait_for_selector(".sidebar-tree")
            started = time.perf_counter()
            clicks = click_to(page, target, anchor)
            clicked = time.perf_counter()
            page.goto(first)
            page.wait_for_selector(".sidebar-tree")
            searching = time.perf_counter()
            result = search_for(page, words, f"docs/{target}.html")
            found = time.perf_counter()
            yield Answer(question.replace("*", ""), title, clicks, clicked - started, words, result, found - searching)
        browser.close()


def click_to(page: Page, target: str, anchor: str) -> tuple[str, ...]:
    """Click on a page in the sidebar, then on a section in its contents; return the texts of what was clicked."""
    clicks = []
    link = page.locator(f".sidebar-tree a[href$='{target}.html']")
    clicks.append(link.inner_text())
    link.click()
    if anchor:
        section = page.locator(f".toc-tree a[href='{anchor}']")
        clicks.append(section.inner_text())
        section.click()
        page.locator(f"[id='{anchor[1:]}']").wait_for(state="visible")
    return tuple(clicks)


def search_for(page: Page, words: str, target: str, most: int = 5) -> int | None:
    """Search for words, and return which of the first results is the page, or None."""
    box = page.locator("input.sidebar-search")
    box.fill(words)
    box.press("Enter")
    page.wait_for_selector("#search-results .search-summary", state="attached")
    page.wait_for_function("document.querySelector('#search-results .search-summary').innerText.trim().length > 0")
    page.wait_for_timeout(300)  # results are added one by one
    found = page.locator("#search-results ul.search > li > a").evaluate_all("links => links.map(link => link.href)")
    pages = [address.partition("#")[0].partition("?")[0] for address in found[:most]]
    return next((rank for rank, address in enumerate(pages, 1) if address.endswith(target)), None)


def is_answered(answer: Answer) -> bool:
    """Whether three clicks or one search lead to the answer."""
    return len(answer.clicks) <= 3 or answer.result is not None


def main() -> None:
    """Print a line for each question."""
    answers = list(ask(ROOT / "out" / "docs"))
    sys.stdout.write("| question | clicks | time | search | result | time |\n|---|---|---|---|---|---|\n")
    for answer in answers:
        clicks = " → ".join(answer.clicks)
        sys.stdout.write(
            f"| {answer.question} | {len(answer.clicks)}: {clicks} | {answer.click_seconds:.1f} s | {answer.words} "
            f"| {answer.result or 'not among five'} | {answer.search_seconds:.1f} s |\n"
        )
    sys.exit(not all(map(is_answered, answers)))


if __name__ == "__main__":
    main()
