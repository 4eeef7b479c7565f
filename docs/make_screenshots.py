"""Makes the pictures of the live page: ``python docs/make_screenshots.py``, with chromium and chromedriver installed.

A study of simulated chains runs while the page is open.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By

import chainscout as cs
from chainscout.sources import simulated
from chainscout.study import Study

FIGURES = Path(__file__).resolve().parent / "figures"
#: Chains of the catalogue, with names for what they describe.
CHAINS = {
    "credit ratings": ("sp-ratings", "ratings"),
    "rainfall, Alofi": ("alofi-rainfall", "alofi"),
    "CD4 cells": ("cd4", "cd4"),
    "DNA, CpG island": ("cpg-islands", "island"),
    "DNA, background": ("cpg-islands", "background"),
    "radio channel": ("gilbert-elliott", "failure=0.02 recovery=0.2"),
}
BUDGET, OBSERVED, BATCH = 6_000, 4_400, 20
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")


def main() -> None:
    """Both pictures."""
    problem = cs.Problem({name: cs.problems.get(source)[chain] for name, (source, chain) in CHAINS.items()})
    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder) / "lab.db"
        states = {name: chain.states for name, chain in problem.chains.items()}
        with Study.create(where, states, budget=BUDGET, target_loss=0.02) as study, serving(where) as address:
            sources = simulated(problem, seed=3)
            study.restart("radio channel", lost=True)
            for _ in range(0, OBSERVED, BATCH):
                told = [(name, sources[name].advance()[0]) for name in study.ask(BATCH)]
                study.tell_many(told)
                if ("credit ratings", "D") in told:  # an issuer that has defaulted stays there: take another one
                    sources["credit ratings"].restart()
                    study.restart("credit ratings")
            for number in (3, 4):
                study.worker(f"rig {number}", renews=False).lease(300, steps=10)
            with browsing() as driver:
                picture(driver, address, "light", 1320, 1440, FIGURES / "dashboard.png")
                picture(driver, address, "dark", 1320, 900, FIGURES / "dashboard-chain.png", chain="credit ratings")


def picture(
    driver: webdriver.Chrome, address: str, scheme: str, width: int, height: int, path: Path, chain: str | None = None
) -> None:
    """One picture: of the top of the page, or of a chain."""
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    driver.get(address)
    time.sleep(3)  # the charts are drawn when the page has received the study
    if chain is not None:
        for button in driver.find_elements(By.CSS_SELECTOR, "#table tbody button"):
            if button.text == chain:
                button.click()
                break
        time.sleep(2)
        cell = driver.find_elements(By.CSS_SELECTOR, "#matrix td.p")[18]
        driver.execute_script("document.getElementById('chains-title').scrollIntoView(); arguments[0].focus()", cell)
        time.sleep(1)
    driver.save_screenshot(str(path))
    print(path)


@contextmanager
def serving(where: Path) -> Iterator[str]:
    """``chainscout serve`` on any free port; its address."""
    command = [sys.executable, "-m", "chainscout", "serve", str(where), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert re.fullmatch(r"http://\S+", line), line
        yield line
        process.terminate()


@contextmanager
def browsing() -> Iterator[webdriver.Chrome]:
    """A browser without a window."""
    options = webdriver.ChromeOptions()
    for option in OPTIONS:
        options.add_argument(option)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


if __name__ == "__main__":
    main()
