"""The parts of the web console that need no queue manager."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from trigmon.console.web import depth_history
from trigmon.console.web.depth_chart import HEIGHT, depth_chart
from trigmon.console.web.depth_history import DepthHistory, Sample
from trigmon.console.web.page_templates import PageTemplates, ago, number, seconds, size, with_query
from trigmon.console.web.shared_values import SharedValues
from trigmon.console.web.web_console import event

WEB = Path(depth_history.__file__).parent


class TestDepthHistory:
    def test_a_queue_that_comes_later_has_samples_from_then_on_and_one_that_goes_is_forgotten(self):
        history = DepthHistory()
        history.add(1000, {"A": 1})
        history.add(2000, {"A": 2, "B": 7})
        assert history.of("A") == [Sample(1000, 1), Sample(2000, 2)]
        assert history.of("B") == [Sample(2000, 7)]
        history.add(3000, {"B": 8})
        assert history.of("A") == []
        assert history.of("B") == [Sample(2000, 7), Sample(3000, 8)]

    def test_it_keeps_24_hours_and_no_more(self):
        history = DepthHistory()
        for minute in range(depth_history.MOST_SAMPLES + 5):
            history.add(minute, {"A": minute})
        assert history.of("A")[0] == Sample(5, 5)
        assert len(history.of("A")) == depth_history.MOST_SAMPLES

    def test_it_keeps_so_many_queues_and_no_more(self, monkeypatch):
        monkeypatch.setattr(depth_history, "MOST_QUEUES", 2)
        history = DepthHistory()
        history.add(1, {"C": 3, "A": 1, "B": 2})
        assert [history.of(name) for name in "ABC"] == [[Sample(1, 1)], [Sample(1, 2)], []]


class TestDepthChart:
    def test_a_depth_holds_until_the_next_sample(self):
        chart = depth_chart([Sample(0, 0), Sample(100, 10), Sample(200, 5)])
        assert chart.line == f"0.0,{HEIGHT}.0 360.0,{HEIGHT}.0 360.0,0.0 720.0,0.0 720.0,60.0"
        assert (chart.most, chart.since_ms, chart.until_ms) == (10, 0, 200)

    def test_an_empty_queue_is_a_line_at_the_bottom_and_one_sample_is_none(self):
        chart = depth_chart([Sample(0, 0), Sample(1, 0)])
        assert (chart.line, chart.most) == (f"0.0,{HEIGHT}.0 720.0,{HEIGHT}.0", 0)
        assert depth_chart([Sample(0, 3)]) is None


class TestSharedValues:
    def test_many_at_once_have_it_read_once_and_again_after_a_second(self):
        now, reads = [0.0], []

        async def read():
            reads.append(now[0])
            await asyncio.sleep(0)
            return len(reads)

        async def play():
            shared = SharedValues(lambda: now[0])
            first = await asyncio.gather(*(shared.get("key", read) for _ in range(50)))
            now[0] = 0.99
            second = await shared.get("key", read)
            now[0] = 1.0
            third = await asyncio.gather(*(shared.get("key", read) for _ in range(50)))
            shared.forget()
            return {*first, second}, {*third}, await shared.get("key", read)

        assert asyncio.run(play()) == ({1}, {2}, 3)
        assert reads == [0.0, 1.0, 1.0]

    @pytest.mark.parametrize(("takes_s", "again_s"), [(0.01, 1.0), (0.2, 4.0), (30.0, 10.0)])
    def test_what_takes_long_to_read_is_read_more_seldom(self, takes_s, again_s):
        now, reads = [0.0], []

        async def read():
            reads.append(now[0])
            now[0] += takes_s

        async def play():
            shared = SharedValues(lambda: now[0])
            await shared.get("key", read)
            done = now[0]
            now[0] = done + again_s - 0.001
            await shared.get("key", read)
            now[0] = done + again_s + 0.001
            await shared.get("key", read)
            return done

        done = asyncio.run(play())
        assert reads == [0.0, pytest.approx(done + again_s, abs=0.01)]

    def test_what_cannot_be_read_is_an_error_for_all_and_is_tried_again_after_a_second(self):
        now, reads = [0.0], []

        async def fails():
            reads.append(now[0])
            raise ValueError("away")

        async def play():
            shared = SharedValues(lambda: now[0])
            found = await asyncio.gather(*(shared.get("key", fails) for _ in range(3)), return_exceptions=True)
            now[0] = 1.0
            return [
                str(each) for each in (*found, *await asyncio.gather(shared.get("key", fails), return_exceptions=True))
            ]

        assert asyncio.run(play()) == ["away"] * 4
        assert reads == [0.0, 1.0]


class TestTexts:
    @pytest.mark.parametrize(
        ("shown", "text"),
        [
            (number(1234567), "1\u202f234\u202f567"),
            (number(2.5), "2.5"),
            (number(None), "-"),
            (seconds(0.1234), "123 ms"),
            (seconds(600), "10 min"),
            (size(999), "999 bytes"),
            (size(52_300_000_000), "49 GiB"),
            (ago(1, 60_001), "60 s"),
            (ago(0, 60_001), ""),
            (with_query("/runs", day="2026-01-01", outcome=""), "/runs?day=2026-01-01"),
        ],
    )
    def test_values_are_written_for_people(self, shown, text):
        assert shown == text

    def test_an_event_of_several_lines_stays_one_event(self):
        assert event("part", "one\r\n\ntwo", "7") == "event: part\nid: 7\ndata: one\ndata: \ndata: two\n\n"


def test_templates_escape_what_they_are_given():
    pages = PageTemplates(allow_actions=False, show_data=False, csrf="", csrf_field="csrf")
    shown = pages.render("problem.html", q_mgr_name="<b>", text="<script>", again=False)
    assert "<b>" not in shown
    assert "&lt;script&gt;" in shown


def test_no_template_holds_script_styles_or_anything_from_elsewhere():
    for path in (WEB / "templates").glob("*.html"):
        text = path.read_text()
        assert not re.search(r"<style|\bstyle=|\son\w+=|javascript:|https?://", text), path.name
        assert re.findall(r"<script[^>]*>", text) in ([], ['<script src="/static/console.js" defer>'])
    trusted = {path.name for path in (WEB / "templates").glob("*.html") if "|safe" in path.read_text()}
    assert trusted == {"overview.html", "queue.html", "run.html"}  # each the part of its own page


def tokens(css):
    return dict(re.findall(r"--([a-z-]+): (#[0-9a-f]{6})", css))


def luminance(colour):
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_on_every_ground(scheme):
    css = (WEB / "static" / "console.css").read_text()
    light, dark = css.split("@media (prefers-color-scheme: dark)")
    found = tokens(light) | (tokens(dark) if scheme == "dark" else {})
    for text in ("text", "soft", "link", "red", "green", "amber"):
        for ground in ("ground", "surface", "hover", "code"):
            one, other = sorted((luminance(found[text]), luminance(found[ground])))
            assert (other + 0.05) / (one + 0.05) >= 4.5, (text, ground)
