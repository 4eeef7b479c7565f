"""The reports in a real browser."""

from pathlib import Path

import pytest
from dashboard_browser import Browser
from dashboard_studies import PROBLEM, stored
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By

from chainscout import experiment
from chainscout.numerals import bound
from chainscout.report.experiments import experiment_page
from chainscout.report.study_page import study_page
from chainscout.study import Study

pytestmark = pytest.mark.system


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_opens_from_disk_without_a_network(
    browser: Browser, where: Path, tmp_path: Path, scheme: str
) -> None:
    path = tmp_path / "report.html"
    with Study.open(where, read_only=True) as study:
        path.write_text(study_page(study, "Study"), encoding="utf-8")
        certificates = stored(study)
    browser.emulate(scheme)
    offline = {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
    browser.driver.execute_cdp_cmd("Network.emulateNetworkConditions", offline)
    browser.open(path.as_uri())
    text = browser.text("body")
    for value in certificates.values():
        assert bound(value) in text
    browser.one("summary").click()
    target = browser.all("table.heat td.p")[2]
    ActionChains(browser.driver).move_to_element(target).perform()
    assert target.find_element(By.CSS_SELECTOR, ".tip").is_displayed()
    assert browser.barriers() == []


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_report_of_an_experiment(browser: Browser, tmp_path: Path, scheme: str, width: int) -> None:
    results = experiment.compare(
        PROBLEM, ["uniform", "scout", "oracle"], [100, 200], 20, engine="python", progress=False
    )
    path = tmp_path / "report.html"
    path.write_text(experiment_page(results), encoding="utf-8")
    browser.emulate(scheme)
    browser.resize(width)
    browser.open(path.as_uri())
    assert len(browser.all("svg.chart polygon.band")) == 6  # three policies, two losses
    assert len(browser.all("svg.chart line.target")) == 2  # Λ/n
    assert len(browser.all("svg.bars rect")) == 9
    assert len(browser.all("svg.bars line.level")) == 3  # η
    assert browser.barriers() == []
    assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
