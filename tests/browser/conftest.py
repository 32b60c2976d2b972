"""The fixtures of the page tests: Playwright is loaded here and nowhere else."""

from tests.ground.fixtures_browser import browser, browser_context, page, page_errors

__all__ = ["browser", "browser_context", "page", "page_errors"]
