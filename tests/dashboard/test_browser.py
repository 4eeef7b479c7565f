"""The live page in a real browser."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from dashboard_browser import Browser
from dashboard_servers import Running
from dashboard_studies import HOSTILE, PROBLEM, advance, new_study, stored
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from chainscout.numerals import bound, cell, lower, upper
from chainscout.report.study_data import StudyReport
from chainscout.sources import simulated
from chainscout.study import Study

pytestmark = pytest.mark.system

Start = Callable[..., Running]


def many(where: Path, chains: int = 130) -> Path:
    with Study.create(where, {f"chain {k:03d}": 3 for k in range(chains)}, budget=100_000) as study:
        study.tell_many([(f"chain {k:03d}", t % 3) for k in range(chains) for t in range(k % 17)])
    return where


def test_the_page_follows_a_running_study(browser: Browser, run: Start, tmp_path: Path) -> None:
    where = tmp_path / "study.db"
    with new_study(where, budget=400) as study:
        server = run(where)
        browser.show(server)
        assert browser.text("#state") == "nothing observed yet"
        assert "nothing to draw yet" in browser.text("#certificate")
        assert "token" not in browser.driver.current_url
        sources = simulated(PROBLEM)
        lease = study.worker("rig 7").lease(600)
        assert lease is not None
        lease.tell(sources[lease.chain].advance()[0])
        held = study.worker("rig 8").lease(600)
        assert held is not None
        browser.until(lambda: "rig 8" in browser.text("#panels"))
        held.give_back()

        def go_on() -> None:
            while not study.finished:
                name = study.ask()
                study.tell(name, sources[name].advance()[0])
                time.sleep(0.002)

        thread = threading.Thread(target=go_on)
        thread.start()
        browser.until(lambda: browser.text("#state") == "running")
        browser.until(lambda: browser.one("#certificate polyline"))
        thread.join()
        browser.until(lambda: browser.text("#state") == "finished: the budget is spent")
        browser.until(lambda: "finished" in browser.text("#log tbody tr"))
        assert "400 of 400 observations used (100 %)" in browser.text("#used")
        figures = dict(
            zip([e.text for e in browser.all("#figures dt")], [e.text for e in browser.all("#figures dd")], strict=True)
        )
        assert figures["certificate (largest)"] == bound(max(stored(study).values()))
        browser.until(lambda: browser.text("#table tbody tr td:nth-child(7)") == bound(stored(study)["sticky"]))
        browser.until(lambda: bound(stored(study)["sticky"]) in browser.text("#certificate .legend"))
        browser.until(lambda: "Leases" not in [title.text for title in browser.all("#panels h2")])


def test_the_page_says_in_words_why_a_study_stopped(browser: Browser, run: Start, tmp_path: Path) -> None:
    where = tmp_path / "study.db"
    with Study.create(where, {"a": 1, "b": 2}, target_loss=0.5) as study:
        study.tell_many([("a", 0)] * 3)
        study.set_aside("b", "its source is broken")
    browser.show(run(where))
    words = "the target loss is certified but for the chains set aside"
    browser.until(lambda: browser.text("#state") == f"finished: {words}")
    browser.until(lambda: words in browser.text("#log"))


@pytest.mark.parametrize(("observed", "most"), [(300, 0), (0, 100)])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_table_stays_where_it_is(
    browser: Browser, run: Start, tmp_path: Path, observed: int, most: int, width: int
) -> None:
    """What was aimed at is what is clicked: charts above the table have their room before there is a row in it.

    With the first observations of all a note goes and numbers come, which moves it by a few lines.
    """
    places = """
window.places = new Set();
const look = () => {
  const row = document.querySelector("#table tbody button");
  if (row) window.places.add(Math.round(row.getBoundingClientRect().top + scrollY));
  requestAnimationFrame(look);
};
look();
"""
    browser.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": places})
    browser.resize(width)
    with new_study(tmp_path / "study.db") as study:
        advance(study, observed)
        browser.show(run(tmp_path / "study.db"))
        advance(study, 100)
        browser.until(lambda: f"{observed + 100} of 2,000" in browser.text("#used") and browser.all("#share polyline"))
        time.sleep(2)  # another round of looking
    found = browser.run("return [...window.places]")
    assert max(found) - min(found) <= most


def test_search_sort_and_pages(browser: Browser, run: Start, tmp_path: Path) -> None:
    browser.show(run(many(tmp_path / "study.db")))
    assert browser.text("#place") == "page 1 of 6"
    assert len(browser.all("#table tbody tr")) == 25
    browser.one("#next").click()
    browser.until(lambda: browser.text("#table tbody button") == "chain 025")
    browser.one("#last").click()
    browser.until(lambda: browser.text("#place") == "page 6 of 6")
    assert not browser.one("#next").is_enabled()
    sorter = browser.one("#by-observations")
    sorter.click()
    browser.until(lambda: browser.text("#table tbody td:nth-child(3)") == "16")
    assert browser.run("return document.querySelector('[aria-sort]').textContent") == "observations ▾"
    sorter.send_keys(Keys.ENTER)  # by keyboard, and the other way round
    browser.until(lambda: browser.text("#table tbody td:nth-child(3)") == "0")
    assert browser.one("[aria-sort]").get_attribute("aria-sort") == "ascending"
    browser.one("#search").send_keys("CHAIN 07")
    browser.until(lambda: browser.text("#found") == "10 chains")
    browser.one("#search").send_keys("x")
    browser.until(lambda: browser.text("#found") == "no chain has such a name")


def test_a_chain_by_keyboard(browser: Browser, run: Start, where: Path) -> None:
    browser.show(run(where))
    button = browser.all("#table tbody button")[1]
    button.send_keys(Keys.ENTER)
    browser.until(lambda: browser.one("#chain").is_displayed())
    assert browser.focused().get_attribute("id") == "chain"
    browser.until(lambda: browser.text("#chain-title") == "Chain cyclic")
    while browser.focused().get_attribute("role") != "gridcell":
        browser.press(Keys.TAB)
    browser.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    with Study.open(where, read_only=True) as study:
        estimate = study.estimate("cyclic")
    expected = (
        f"1 → 2: {cell(float(estimate.matrix[1, 2]))}, between {lower(estimate.lower[1, 2])} and "
        f"{upper(estimate.upper[1, 2])} with probability 0.95; seen {estimate.transitions[1, 2]} times in "
        f"{estimate.exits[1]} exits"
    )
    assert browser.text("#tip") == expected
    assert browser.focused().get_attribute("aria-label") == expected
    browser.press(Keys.HOME, Keys.ARROW_LEFT)  # it ends at the edge
    assert browser.focused().get_attribute("aria-label").startswith("1 → 0:")
    browser.press(Keys.ESCAPE)
    assert not browser.one("#chain").is_displayed()
    assert not browser.one("#tip").is_displayed()
    assert browser.focused().text == "cyclic"


def test_hovering_shows_the_interval(browser: Browser, run: Start, where: Path) -> None:
    browser.show(run(where))
    browser.one("#table tbody button").click()
    target = browser.until(lambda: browser.all("#matrix td.p"))[3]
    ActionChains(browser.driver).move_to_element(target).perform()
    browser.until(lambda: browser.text("#tip").startswith("0 → 3: "))
    assert "never left: not known" in browser.text("#matrix")
    assert "rows never left" in browser.text("#unknown")
    never = browser.one("#matrix tr.never")
    assert never.find_element(By.CSS_SELECTOR, "th .mark").text == "○"
    assert "the row was never left: not known" in str(
        never.find_element(By.CSS_SELECTOR, "td.p").get_attribute("aria-label")
    )
    stripes = browser.run("return getComputedStyle(document.querySelector('#matrix tr.never td.p')).backgroundImage")
    assert "repeating-linear-gradient" in stripes


def test_a_large_matrix_is_walked_a_window_at_a_time(browser: Browser, run: Start, tmp_path: Path) -> None:
    with Study.create(tmp_path / "study.db", {"large": 500}, budget=100_000) as study:
        study.tell_many([("large", (t * t) % 500) for t in range(3000)])
    browser.show(run(tmp_path / "study.db"))
    browser.one("#table tbody button").click()
    browser.until(lambda: "rows 1–20, columns 1–20 of 500" in browser.text("#window"))
    assert len(browser.all("#matrix td.p")) == 400
    browser.run("document.querySelectorAll('#matrix td.p')[19].focus()")
    browser.press(Keys.ARROW_RIGHT)
    browser.until(lambda: "columns 21–40" in browser.text("#window"))
    browser.until(lambda: browser.focused().get_attribute("aria-label").startswith("0 → 20:"))


@pytest.mark.parametrize("width", [360, 800, 1920])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_barriers(browser: Browser, run: Start, where: Path, width: int, scheme: str) -> None:
    browser.resize(width)
    browser.emulate(scheme)
    with Study.open(where) as study:
        study.worker("rig 7").lease(600)
        browser.show(run(where))
        browser.one("#table tbody button").click()
        browser.until(
            lambda: browser.all("#matrix td.p") and browser.all("#panels td") and browser.one("#share polyline")
        )
        assert browser.barriers() == []
        assert browser.run("return document.documentElement.scrollWidth <= innerWidth")
        red, green, blue = browser.run(
            "return getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)"
        )
        assert (red + green + blue < 150) == (scheme == "dark")
        browser.emulate("light" if scheme == "dark" else "dark")  # while it is open
        assert browser.barriers() == []


def test_allocation_is_held_against_plug_in_and_aim(browser: Browser, run: Start, where: Path) -> None:
    browser.show(run(where))
    browser.until(lambda: len(browser.all("#share svg.chart")) == 3)
    with Study.open(where, read_only=True) as study:
        curves = StudyReport(study, "Study").curves().curves
    for figure, curve in zip(browser.all("#share figure"), curves, strict=True):
        assert figure.find_element(By.CSS_SELECTOR, "figcaption").text == curve.label
        words = [entry.text for entry in figure.find_elements(By.CSS_SELECTOR, "li")]
        values = (curve.share[-1], curve.plug_in[-1], curve.aim)
        names = ("share", "η̂", "aim")
        assert words == [f"{name}: {cell(value)} (latest)" for name, value in zip(names, values, strict=True)]
        chart = figure.find_element(By.CSS_SELECTOR, "svg.chart")
        ActionChains(browser.driver).move_to_element(chart).perform()  # and at an earlier moment
        browser.until(lambda found=figure: " at " in found.find_element(By.CSS_SELECTOR, "li:nth-child(2)").text)


def test_hostile_names_do_nothing(browser: Browser, run: Start, tmp_path: Path) -> None:
    with Study.create(tmp_path / "study.db", {name: list(HOSTILE) for name in HOSTILE}, budget=10_000) as study:
        for t in range(100):
            study.tell(study.ask(), HOSTILE[t % len(HOSTILE)])
        study.worker(HOSTILE[1][:100]).lease(600)
    browser.show(run(tmp_path / "study.db"))
    browser.until(lambda: len(browser.all("#table tbody button")) == len(HOSTILE))
    for place in range(len(HOSTILE)):
        browser.all("#table tbody button")[place].click()
        browser.until(lambda: browser.all("#matrix td.p"))
    assert browser.run("return document.querySelectorAll('script').length") == 1
    assert browser.run("return document.images.length") == 0
    shown = [button.text for button in browser.all("#table tbody button")]
    assert shown[0] == HOSTILE[0]
    assert "nul\\u0000inside" in shown
    browser.resize(360)
    browser.until(lambda: browser.run("return document.documentElement.scrollWidth <= innerWidth"))


def test_a_failing_study_is_said(browser: Browser, run: Start, where: Path) -> None:
    server = run(where)
    browser.show(server)
    with where.open("r+b") as file:
        file.truncate(6000)
    browser.until(lambda: "is damaged" in browser.text("#failure"))
    assert browser.text("#state") == "failed"
    assert browser.barriers() == []
    browser.open(server.address)
    browser.until(lambda: "is damaged" in browser.text("#failure"))
    assert not browser.one("main").is_displayed()  # nothing is shown where nothing was read
    server.end()
    browser.until(lambda: "the server does not answer" in browser.text("#failure"))
    browser.complaints()  # the browser reports the lost connection


@pytest.mark.filterwarnings("ignore::chainscout.errors.MixedUnitsWarning")
def test_a_card_a_question(browser: Browser, run: Start, tmp_path: Path) -> None:
    where = tmp_path / "study.db"
    questions = ["reach 1 from 0 within 3", "time to 1 from 0"]
    with Study.create(where, {"north": 2}, questions=questions, target_width=0.01) as study:
        browser.show(run(where))
        browser.until(lambda: len(browser.all("#cards figure")) == 2)
        assert "nothing to draw yet" in browser.text("#cards")
        study.tell_many([("north", int(t % 3 == 0)) for t in range(400)])
        browser.until(
            lambda: all(figure.find_elements(By.CSS_SELECTOR, "polyline") for figure in browser.all("#cards figure"))
        )
        assert "north: time to 1 from 0" in browser.text("#cards")
        assert "and is to be 0.01 wide" in browser.text("#cards")
        assert "the replay waits for an exit of" in browser.text("#cards")


def delay(browser: Browser, part: str, seconds: float) -> None:
    """The server's answers for a part come later, as on a slow line; with a negative number they do not come."""
    script = """
const [part, seconds, known] = [arguments[0], arguments[1], window.fetchOfThePage ?? window.fetch];
window.fetchOfThePage = known;
window.fetch = async (address, ...others) => {
  if (!address.startsWith(`/part/${part}?`)) return known(address, ...others);
  if (seconds < 0) throw new TypeError("no such server");
  const answer = await known(address, ...others);
  const text = answer.text.bind(answer);
  answer.text = async () => { await new Promise((done) => setTimeout(done, 1000 * seconds)); return text(); };
  return answer;
};
"""
    browser.run(script, part, seconds)


def test_a_chain_that_was_closed_stays_closed(browser: Browser, run: Start, where: Path) -> None:
    """Also if its answer comes later; and what happened in the meantime is shown."""
    browser.show(run(where))
    delay(browser, "chain", 1)
    browser.one("#table tbody button").click()
    browser.run("document.activeElement.blur(); document.getElementById('close')?.click()")
    time.sleep(0.3)
    assert not browser.one("#chain").is_displayed()
    delay(browser, "chain", 0)
    browser.one("#table tbody button").click()
    browser.until(lambda: browser.one("#chain").is_displayed())
    delay(browser, "chain", 1)
    browser.all("#table tbody button")[1].click()
    time.sleep(0.3)
    browser.one("#close").click()
    time.sleep(1.5)
    assert not browser.one("#chain").is_displayed()


def test_a_study_that_ends_while_a_chain_is_closed(browser: Browser, run: Start, tmp_path: Path) -> None:
    with new_study(tmp_path / "study.db", budget=50) as study:
        advance(study, 40)
        browser.show(run(tmp_path / "study.db"))
        browser.one("#table tbody button").click()
        browser.until(lambda: browser.one("#chain").is_displayed())
        delay(browser, "study", 1)
        advance(study, 10)
        time.sleep(0.9)  # the answer is under way
        browser.one("#close").click()
        browser.until(lambda: browser.text("#state") == "finished: the budget is spent")


def test_the_table_is_what_the_search_says(browser: Browser, run: Start, tmp_path: Path) -> None:
    browser.show(run(many(tmp_path / "study.db")))
    delay(browser, "chains", 0.5)
    browser.one("#search").send_keys("chain 07")
    browser.one("#by-observations").click()  # before the table shows what was searched
    browser.until(lambda: browser.text("#found") == "10 chains")
    time.sleep(1)
    assert browser.text("#found") == "10 chains"
    assert browser.one("[aria-sort]").text == "observations ▾"


def test_failures_are_said_while_they_last(browser: Browser, run: Start, where: Path) -> None:
    browser.show(run(where))
    delay(browser, "chain", -1)
    browser.one("#table tbody button").click()
    browser.until(lambda: "the server does not answer" in browser.text("#failure"))
    time.sleep(1.5)
    assert browser.one("#failure").is_displayed()
    assert browser.text("#state") == "running"  # the study itself is well
    delay(browser, "chain", 0)
    browser.one("#table tbody button").click()
    browser.until(lambda: browser.one("#chain").is_displayed())
    assert not browser.one("#failure").is_displayed()
    browser.run("document.querySelectorAll('#matrix td.p')[3].focus()")
    delay(browser, "chains", -1)
    browser.one("#by-states").click()
    browser.until(lambda: browser.one("#failure").is_displayed())
    delay(browser, "chains", 0)
    browser.one("#by-states").click()
    browser.until(lambda: not browser.one("#failure").is_displayed())


def test_a_panel_that_comes_takes_no_focus_away(browser: Browser, run: Start, where: Path) -> None:
    browser.show(run(where))
    browser.run("document.querySelector('#log .scroll').focus()")
    with Study.open(where) as study:
        study.worker("rig 7").lease(600)
        browser.until(lambda: "rig 7" in browser.text("#panels"))
    assert browser.run("return document.activeElement.matches('#log .scroll')")


def test_the_tab_key_leaves_the_matrix(browser: Browser, run: Start, where: Path) -> None:
    browser.show(run(where))
    browser.one("#table tbody button").click()
    browser.until(lambda: browser.all("#matrix td.p"))
    browser.run("document.querySelector('#matrix td.p').focus()")
    browser.press(Keys.ARROW_RIGHT, Keys.ARROW_DOWN)
    assert browser.focused().get_attribute("aria-label").startswith("1 → 1:")
    assert len(browser.all("#matrix [tabindex='0']")) == 1
    browser.press(Keys.SHIFT + Keys.TAB)
    assert browser.focused().get_attribute("role") != "gridcell"


def test_the_window_stays_if_the_next_one_does_not_come(browser: Browser, run: Start, tmp_path: Path) -> None:
    with Study.create(tmp_path / "study.db", {"large": 50}, budget=100_000) as study:
        study.tell_many([("large", (t * t) % 50) for t in range(300)])
    browser.show(run(tmp_path / "study.db"))
    browser.one("#table tbody button").click()
    browser.until(lambda: browser.all("#matrix td.p"))
    browser.run("document.querySelectorAll('#matrix td.p')[19].focus()")
    delay(browser, "chain", -1)
    browser.press(Keys.ARROW_RIGHT)
    browser.until(lambda: browser.one("#failure").is_displayed())
    assert browser.focused().get_attribute("aria-label").startswith("0 → 19:")
