// The page: follows the study's event stream and shows the study.
import * as chain from "./chain.js";
import * as charts from "./charts.js";
import { cell, get, make, moment, one, pairs, write } from "./format.js";
import * as table from "./table.js";

const MOST_EVENTS = 200;
let known = 0; // the number of the last event that is shown

// The cookie lets the browser in now, so the address need not show the token any more.
if (location.search) history.replaceState(null, "", location.pathname);

function showStudy(study) {
  fail(null);
  one("main").hidden = false; // it is hidden until there is something to show
  document.title = `${study.title} – chainscout`;
  one("title").replaceChildren(make("bdi", {}, study.title));
  write(one("state"), study.state_words); // a screen reader says it once
  one("state").className = `state ${study.state}`;
  const bar = one("progress");
  bar.hidden = study.budget === null;
  if (study.budget !== null) {
    bar.max = study.budget;
    bar.value = Math.min(study.used, study.budget);
  }
  one("used").textContent = study.used_words;
  pairs(one("figures"), study.facts);
  one("notes").replaceChildren(...study.notes.map((note) => make("li", {}, note)));
}

function fail(sentence) {
  one("failure").hidden = sentence === null;
  one("failure").textContent = sentence ?? "";
  if (sentence !== null) {
    one("state").textContent = "failed";
    one("state").className = "state failed";
  }
}

function showEvent(event) {
  if (event.number <= known) return;
  known = event.number;
  const words = [event.kind, event.chain, event.detail].filter(Boolean).join(" · ");
  one("log").prepend(make("li", { value: event.number }, make("time", {}, moment(event.time)), make("bdi", {}, words)));
  while (one("log").children.length > MOST_EVENTS) one("log").lastChild.remove();
}

// The panels: a section with a table for each.
async function showPanels() {
  const panels = await get("/api/panels");
  charts.showEvidence(panels.find((panel) => panel.drawing)?.drawing ?? null);
  one("panels").replaceChildren(...panels.map(({ title, columns, rows, notes }) => {
    const number = columns.map((_, place) => rows.every((row) => typeof row[place] === "number" || row[place] === null));
    const line = (tag, values, attributes) => make("tr", {}, ...values.map((value, place) =>
      make(tag, { class: number[place] ? "number" : null, ...attributes }, make("bdi", {}, cell(value)))));
    const found = make("table", {}, make("thead", {}, line("th", columns, { scope: "col" })), make("tbody", {}, ...rows.map((row) => line("td", row))));
    return make("section", { "data-panel": title }, make("h2", {}, title),
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, found),
      ...notes.map((note) => make("p", { class: "dim" }, note)));
  }));
}

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

// At most one round of requests at a time, and one more if something happened in the meantime.
let looking = false;
let again = false;
async function look() {
  if (looking) {
    again = true;
    return;
  }
  looking = true;
  do {
    again = false;
    try {
      await Promise.all([charts.refresh(), showPanels(), table.refresh(), chain.refresh()]);
    } catch (error) {
      fail(error.message);
    }
    await pause(1000);
  } while (again);
  looking = false;
}

async function openChain(number, from) {
  try {
    await chain.open(number, from);
    await charts.choose(number);
  } catch (error) {
    fail(error.message);
  }
}

function listen() {
  const source = new EventSource(`/api/events?after=${known}`);
  source.addEventListener("study", (message) => { showStudy(JSON.parse(message.data)); look(); });
  source.addEventListener("happened", (message) => showEvent(JSON.parse(message.data)));
  source.addEventListener("failed", (message) => fail(JSON.parse(message.data).error));
  source.addEventListener("error", () => {
    fail("the server does not answer; what is shown is from before");
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
  });
}

try {
  const study = await get("/api/study");
  showStudy(study);
  charts.reserveShares(study.chains);
  // The charts come first, because the table below them must not move when there is something to click on.
  await Promise.race([charts.refresh(), pause(500)]);
  await table.start(openChain);
  for (const event of await get("/api/log")) showEvent(event);
  performance.mark("chainscout-shown");
} catch (error) {
  fail(error.message);
}
listen();
