"""Debian's Chromium and its driver, in a folder of their own, without a request to any other machine."""

import os
import shutil
from pathlib import Path

import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service

from kbretrieval.book.glyphs import FONT_FILE

WINDOW = (1280, 1600)
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # The page is this machine's; whatever else is asked for is not found.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
)

# A machine without Chinese fonts would show boxes in the page's own text: the book's font is added to its fonts.
_FONTS = """<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir>{fonts}</dir>
  <cachedir>{cache}</cachedir>
</fontconfig>
"""


def programs() -> tuple[str, str]:
    """Return the paths of browser and driver; skips where one is missing, which is a failure in CI on Linux."""
    found = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
    absent = [name for name, path in found.items() if path is None]
    if absent:
        pytest.skip(f"{' and '.join(absent)} not on PATH: on Debian run `apt-get install chromium chromium-driver`")
    return str(found["chromium"]), str(found["chromedriver"])


def open_browser(folder: Path) -> Chrome:
    """Return a headless browser whose profile, fonts and log lie below `folder`; the caller quits it."""
    chromium, driver = programs()
    folder.mkdir(parents=True, exist_ok=True)
    fonts = folder / "fonts.conf"
    text = _FONTS.format(fonts=FONT_FILE.parent, cache=folder / "font-cache")
    fonts.write_text(text, encoding="utf-8", newline="\n")
    options = Options()
    options.binary_location = chromium
    options.unhandled_prompt_behavior = "accept"
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}", f"--window-size={WINDOW[0]},{WINDOW[1]}"):
        options.add_argument(flag)
    environment = {**os.environ, "FONTCONFIG_FILE": str(fonts)}
    # The driver's path is given, so that Selenium looks for none on the network.
    service = Service(executable_path=driver, log_output=str(folder / "driver.log"), env=environment)
    return Chrome(options=options, service=service)
