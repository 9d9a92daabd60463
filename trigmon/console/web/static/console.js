// Live pages: a part of a page that has changed takes the place of the old one; the output of a run grows.
// Without script every page shows the same at each load.
"use strict";

const LONGEST = 400000;

function replaceParts(container, html) {
  const fresh = new DOMParser().parseFromString(html, "text/html");
  for (const part of fresh.querySelectorAll("[data-part]")) {
    const old = document.getElementById(part.id);
    if (!old || old.outerHTML === part.outerHTML) continue;
    const active = document.activeElement;
    const inside = old.contains(active);
    // What a person writes, or has opened, is not taken away.
    if (inside && active.matches("input, select, textarea")) continue;
    for (const opened of old.querySelectorAll("details[open][id]")) {
      const same = part.querySelector("#" + CSS.escape(opened.id));
      if (same) same.open = true;
    }
    const key = inside ? active.id || active.getAttribute("href") : "";
    const scrolled = [...old.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
    const shown = document.importNode(part, true);
    old.replaceWith(shown);
    shown.querySelectorAll(".scroll").forEach((each, at) => { each.scrollLeft = scrolled[at] || 0; });
    if (key) {
      const same = [...shown.querySelectorAll("a, button, summary, .scroll")].find(
        (each) => each.id === key || each.getAttribute("href") === key);
      if (same) same.focus({ preventScroll: true });
    }
  }
}

function append(pre, text) {
  const atEnd = pre.scrollHeight - pre.scrollTop - pre.clientHeight < 30;
  pre.append(text);
  if (pre.textContent.length > LONGEST) pre.textContent = pre.textContent.slice(-LONGEST / 2);
  pre.closest("[data-output]").hidden = false;
  if (atEnd) pre.scrollTop = pre.scrollHeight;
}

function follow(container) {
  const state = document.getElementById("live-state");
  const say = (word, text) => {
    if (state.dataset.state === word) return;
    state.dataset.state = word;
    state.textContent = text;
  };
  const source = new EventSource(container.dataset.events);
  source.addEventListener("open", () => say("live", "live"));
  source.addEventListener("error", () => say("lost", "not connected"));
  source.addEventListener("part", (message) => {
    say("live", "live");
    replaceParts(container, message.data);
  });
  source.addEventListener("away", (message) => say("away", message.data));
  source.addEventListener("output", (message) => {
    const piece = JSON.parse(message.data);
    const pre = document.getElementById(piece.stream);
    if (pre) append(pre, piece.text);
  });
  source.addEventListener("end", () => {
    source.close();
    say("ended", "ended");
  });
  window.addEventListener("pagehide", () => source.close());
}

for (const pre of document.querySelectorAll("pre.output")) pre.scrollTop = pre.scrollHeight;
for (const container of document.querySelectorAll("[data-events]")) follow(container);
for (const form of document.querySelectorAll("form[data-submit-on-change]")) {
  form.addEventListener("change", () => form.requestSubmit());
}
