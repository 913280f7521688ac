"""Takes the picture of a report: picture.py REPORT.html PICTURE.png (needs Debian's chromium)."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

SIZE = {"width": 1000, "height": 600}


def main() -> int:
    """Writes the first screen of a report as PNG."""
    report, picture = map(Path, sys.argv[1:])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport=SIZE)  # type: ignore[arg-type]
        page.goto(report.resolve().as_uri())
        page.wait_for_timeout(1500)  # until the charts are drawn
        page.screenshot(path=str(picture))
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
