"""The web console in a real browser: every page at two widths, light and dark; live parts; keyboard; names; actions.

``TRIGMON_SCREENSHOTS=DIRECTORY`` keeps a picture of each page.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.console.web import browser as browsers
from tests.console.web.populated import MARKUP, SECRET, Populated
from tests.daemons import queue_managers
from tests.waiting import until as until_slowly
from trigmon.mq.calls import Alter, Delete

pytestmark = pytest.mark.skipif(not browsers.is_there(), reason=browsers.WHY_NOT)
PAGES = {
    "overview": "/",
    "queue": "/queues/ORDERS",
    "queue-with-messages": "/queues/PLAIN",
    "runs": "/runs",
    "run-failed": "/runs/FAILS",
    "run-going-on": "/runs/WAITS",
    "dead-letters": "/dead-letters",
    "dead-letter-rehearsal": "/dead-letters/rehearse?queue=PLAIN&dest=&reason=0&error=&what=discard",
    "rehearse": "/rehearse?queue=ORDERS&trigger_type=depth&trigger_depth=5",
    "problem": "/queues/NONE",
}
ROW_OF_ODD = "#part-queues a[href='/queues/A%2FODD%25NAME']"
WAIT_S = 300.0
INTERACTIVE = {"button", "link", "textbox", "combobox", "spinbutton", "checkbox"}


def until(found):
    """Returns what ``found()`` returns as soon as it is true, also where the page has changed under its hands."""
    from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException

    def try_it():
        try:
            return found()
        except (NoSuchElementException, StaleElementReferenceException):
            return None

    return until_slowly(try_it, WAIT_S)


class Screen:
    """A browser that has been let in. ``path`` gives the id of a queue's newest run for its name."""

    def __init__(self, driver, web, populated):
        self.driver, self.web, self.populated = driver, web, populated
        driver.get(web.where["url"])
        assert "token" not in driver.current_url

    def open(self, path):
        where, _, name = path.rpartition("/")
        if where == "/runs" and name.isupper():
            path = f"/runs/{self.populated.run_of(name, None if name == 'WAITS' else 'exited')['run_id']}"
        self.driver.get(f"http://{self.web.host}{path}")
        return self

    @property
    def text(self):
        return self.driver.find_element("tag name", "body").text

    def until_live(self):
        until(lambda: self.driver.find_element("id", "live-state").get_attribute("data-state") == "live")

    def depth_of_odd(self):
        script = "return document.querySelector(arguments[0]).closest('tr').querySelector('td').textContent"
        return self.driver.execute_script(script, ROW_OF_ODD)

    def find(self, selector):
        return self.driver.find_element("css selector", selector)

    def named(self, role):
        """Returns the names of the page's elements of a role, as a screen reader gets them."""
        nodes = self.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        return [node.get("name", {}).get("value", "") for node in nodes if node.get("role", {}).get("value") == role]

    def complaints(self):
        """Returns what the browser has to say: refused script or style, errors of ours."""
        return [each["message"] for each in self.driver.get_log("browser") if "status of 404" not in each["message"]]

    def press(self, *keys):
        from selenium.webdriver import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()


@pytest.fixture(scope="module")
def driver():
    with browsers.browser() as one:
        yield one


@pytest.fixture(scope="module")
def screen(driver, populated, actor):
    one = Screen(driver, actor, populated)
    yield one
    assert one.complaints() == []


@pytest.mark.parametrize("scheme", browsers.LOOKS)
@pytest.mark.parametrize("width", browsers.WIDTHS)
@pytest.mark.parametrize("page", PAGES)
def test_a_page_fits_the_screen_and_no_markup_of_others_is_run(screen, page, width, scheme):
    browsers.look(screen.driver, width, scheme)
    screen.open(PAGES[page])
    assert screen.driver.execute_script("return document.documentElement.scrollWidth") <= width
    assert screen.find("h1").text
    assert screen.driver.execute_script("return document.scripts.length") == 1
    ground = screen.driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(", "))) < 300) is (scheme == "dark")
    if directory := os.environ.get("TRIGMON_SCREENSHOTS"):
        browsers.full_height(screen.driver, width, scheme)
        browsers.photograph(screen.driver, Path(directory) / f"{page}-{width}-{scheme}.png")
    assert screen.complaints() == []


@pytest.mark.parametrize("page", PAGES)
def test_a_screen_reader_gets_a_name_for_everything_that_can_be_used(screen, page):
    screen.open(PAGES[page])
    for role in INTERACTIVE:
        assert all(name.strip() for name in screen.named(role)), role
    assert len(screen.named("main")) == 1
    assert "Pages" in screen.named("navigation")
    assert len(screen.driver.find_elements("css selector", "h1")) == 1
    unlabelled = (
        "return [...document.querySelectorAll('section')].filter(s => !s.ariaLabel && !s.querySelector('h2,p')).length"
    )
    assert screen.driver.execute_script(unlabelled) == 0
    images = screen.named("image") + screen.named("img")
    assert all(images)


def test_the_buttons_of_equal_words_have_names_of_their_own(screen):
    screen.open("/")
    assert "Resume FAILS" in screen.named("button")
    screen.open("/queues/PLAIN")
    assert "Pause PLAIN" in screen.named("button")
    assert "Reason to PLAIN" in screen.named("textbox")


def test_a_page_is_used_by_keyboard_alone(screen):
    from selenium.webdriver import Keys

    screen.open("/")
    screen.press(Keys.TAB)
    assert screen.driver.switch_to.active_element.text == "Skip to the content"
    screen.press(Keys.ENTER)
    assert screen.driver.execute_script("return document.activeElement.id") == "main"
    screen.open("/")
    screen.press(*[Keys.TAB] * 3)
    assert screen.driver.switch_to.active_element.text == "Runs"
    outline = screen.driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    screen.press(Keys.ENTER)
    assert until(lambda: screen.driver.current_url.endswith("/runs"))


def test_the_overview_moves_by_itself_and_keeps_the_focus(screen, populated):
    screen.open("/")
    screen.until_live()
    screen.driver.execute_script("document.querySelector(arguments[0]).focus()", ROW_OF_ODD)
    with populated.daemon.connect() as qm:
        qm.put("A/ODD%NAME", "one")
        until(lambda: screen.depth_of_odd() == "1")
        qm.open("A/ODD%NAME", "input_shared").get()
        until(lambda: screen.depth_of_odd() == "0")
    focused = screen.driver.execute_script("return document.activeElement.getAttribute('href')")
    assert focused == "/queues/A%2FODD%25NAME"


def test_what_a_person_writes_is_not_taken_away_by_what_is_live(screen, populated):
    screen.open("/queues/A%2FODD%25NAME")
    screen.until_live()
    screen.find("input[name=text]").send_keys("because")
    with populated.daemon.connect() as qm:
        qm.put("A/ODD%NAME", "one")
        until(lambda: screen.driver.find_elements("css selector", "#part-messages tbody tr"))
        qm.open("A/ODD%NAME", "input_shared").get()
        until(lambda: not screen.driver.find_elements("css selector", "#part-messages tbody tr"))
    assert screen.find("input[name=text]").get_attribute("value") == "because"


def test_data_and_markup_of_messages_are_shown_as_text(screen):
    screen.open("/queues/PLAIN")
    assert SECRET in screen.text
    assert MARKUP in screen.text


def test_the_run_is_followed_to_its_end_with_its_output(driver, web_of, tmp_path_factory):
    with queue_managers(lambda: tmp_path_factory.mktemp("qm")) as make:
        daemon = make(with_monitor=True)
        own = Populated(daemon, daemon.home).fill()
        web = web_of(daemon)
        screen = Screen(driver, web, own).open("/runs/WAITS")
        screen.until_live()
        seen = screen.find("#stdout").text.count("\n")
        until(lambda: screen.find("#stdout").text.count("\n") > seen + 3)
        own.end()
        until(lambda: screen.find("#live-state").text == "ended")
        lines = screen.find("#stdout").text.splitlines()
        assert lines == [*(f"line {number}" for number in range(1, len(lines))), "änd"]
        assert screen.find("#stderr").text == MARKUP
        assert "✓ ok" in screen.find("#part-facts").text
        assert "Cancel" not in screen.named("button")
        daemon.stop()
        # What was read within the last second is shown to all who ask.
        until(lambda: "This cannot be shown or done" in screen.open("/").text)
        assert "trigmon run" in screen.text
        web.end()  # what is left of this home is killed behind the block
    driver.get_log("browser")  # its 503 is what is looked for here


class TestActions:
    """Each action by its buttons; the last tests of the file, since they change what the others look at."""

    @pytest.fixture(autouse=True)
    def wide(self, screen):
        browsers.look(screen.driver, 1280, "light")
        screen.driver.get(screen.web.where["url"])

    def click(self, screen, name):
        """Clicks a button, which a live page may replace at any moment."""

        def is_clicked():
            buttons = screen.driver.find_elements("tag name", "button")
            found = [one for one in buttons if (one.get_attribute("aria-label") or one.text) == name]
            for one in found[:1]:
                one.click()
            return bool(found)

        until(is_clicked)

    def is_noted(self, screen, text):
        """Waits for the page whose note has this text: the page before may have had a note too."""
        script = "return [...document.querySelectorAll('.note')].map(each => each.textContent).join(' ')"
        return until(lambda: text in " ".join(screen.driver.execute_script(script).split()))

    def test_a_queue_is_paused_with_a_reason_and_resumed(self, screen):
        screen.open("/queues/PLAIN").find("input[name=text]").send_keys("the database is down")
        self.click(screen, "Pause PLAIN")
        assert self.is_noted(screen, "PLAIN is paused")
        assert "the database is down" in screen.text
        self.click(screen, "Resume PLAIN")
        assert self.is_noted(screen, "PLAIN is resumed")

    def test_runs_are_filtered_by_a_choice_alone(self, screen, populated):
        from selenium.webdriver.support.select import Select

        screen.open("/runs")
        Select(screen.find("select[name=process]")).select_by_visible_text("P.DRAIN")
        until(lambda: "process=P.DRAIN" in screen.driver.current_url)
        assert populated.run_of("FAILS")["run_id"] not in screen.text
        assert populated.run_of("ORDERS")["run_id"] in screen.text

    def test_a_run_is_started_again(self, screen, populated):
        before = populated.run_of("ORDERS")["run_id"]
        screen.open(f"/runs/{before}")
        self.click(screen, f"Retry run {before}")
        assert self.is_noted(screen, "is to run again")
        until(lambda: populated.run_of("ORDERS")["run_id"] != before)

    def test_a_queue_is_changed_after_a_rehearsal(self, screen):
        screen.open("/rehearse?queue=PLAIN")
        field = screen.find("input[name=max_q_depth]")
        field.clear()
        field.send_keys("77")
        self.click(screen, "Rehearse")
        assert "ALTER QLOCAL(PLAIN) MAXDEPTH(77)" in until(lambda: "ALTER" in screen.text and screen.text)
        self.click(screen, "Save the change")
        assert self.is_noted(screen, "PLAIN is altered.")
        assert "of 77" in screen.text

    def test_dead_letters_are_returned_and_discarded_after_a_rehearsal(self, screen, populated):
        screen.open("/dead-letters?queue=ORDERS.FAILED")
        screen.find("details summary").click()
        assert "a bad order" in screen.text
        self.click(screen, "Rehearse a discard")
        assert until(lambda: "1 message of ORDERS.FAILED would be deleted for good" in screen.text)
        screen.driver.back()
        self.click(screen, "Rehearse a retry")
        assert until(lambda: "1 to ORDERS" in screen.text)
        self.click(screen, "Return 1 message")
        assert self.is_noted(screen, "1 message returned from ORDERS.FAILED")

    def test_the_process_of_a_queue_is_started(self, screen, populated):
        before = populated.run_of("ORDERS")["run_id"]
        screen.open("/queues/ORDERS")
        self.click(screen, "Start now P.DRAIN")
        assert self.is_noted(screen, "P.DRAIN is to run for ORDERS")
        until(lambda: populated.run_of("ORDERS")["run_id"] != before)

    def test_dead_letters_are_discarded_after_a_rehearsal(self, screen):
        screen.open("/dead-letters?queue=SYSTEM.DEAD.LETTER.QUEUE")
        self.click(screen, "Rehearse a discard")
        assert until(lambda: "3 messages of SYSTEM.DEAD.LETTER.QUEUE would be deleted for good" in screen.text)
        self.click(screen, "Delete 3 messages")
        assert self.is_noted(screen, "3 messages discarded from SYSTEM.DEAD.LETTER.QUEUE")

    def test_a_queue_of_any_type_is_found_by_its_name(self, screen):
        screen.open("/").find("input[name=name]").send_keys("ALIAS")
        self.click(screen, "Show the queue")
        until(lambda: screen.driver.current_url.endswith("/queues/ALIAS"))
        assert "base_q_name" in screen.text

    def test_a_rehearsal_sends_what_was_changed_and_says_that_others_altered_the_queue(self, screen, populated):
        screen.open("/rehearse?queue=PLAIN")
        with populated.daemon.connect() as qm:
            qm.call(Alter(object_type="QLOCAL", name="PLAIN", attributes={"trigger_data": "another's"}))
        field = screen.find("input[name=max_q_depth]")
        field.clear()
        field.send_keys("78")
        self.click(screen, "Rehearse")
        assert "PLAIN was altered meanwhile" in until(lambda: "ALTER" in screen.text and screen.text)
        assert "ALTER QLOCAL(PLAIN) MAXDEPTH(78)" in screen.text
        assert "trigger_data" not in screen.driver.current_url

    def test_a_held_queue_is_resumed_from_the_overview(self, screen):
        screen.open("/")
        self.click(screen, "Resume FAILS")
        assert self.is_noted(screen, "FAILS is resumed")

    def test_a_run_that_goes_on_is_cancelled(self, screen, populated):
        run_id = populated.run_of("WAITS")["run_id"]
        screen.open(f"/runs/{run_id}").find("input[name=text]").send_keys("the wrong day")
        self.click(screen, f"Cancel run {run_id}")
        assert self.is_noted(screen, "its monitor was asked to end it")
        until(lambda: "cancelled" in screen.find("#part-facts").text)
        with populated.daemon.connect() as qm:
            qm.call(Delete(object_type="QLOCAL", name="A/ODD%NAME"))
