// The page: listens to the study and shows what it hears.
import * as chain from "./chain.js";
import * as charts from "./charts.js";
import { cell, get, make, moment, one, pairs } from "./format.js";
import * as table from "./table.js";

const MOST_EVENTS = 200;
let known = 0; // the number of the last event that is shown

// The token is in a cookie now; the address can be shown to others.
if (location.search) history.replaceState(null, "", location.pathname);

function showStudy(study) {
  fail(null);
  one("main").hidden = false; // before there is anything to show, nothing is
  document.title = `${study.title} – chainscout`;
  one("title").replaceChildren(make("bdi", {}, study.title));
  const words = { empty: "nothing observed yet", running: "running", finished: `finished: ${study.stopped}` }[study.state];
  if (one("state").textContent !== words) one("state").textContent = words; // said once by screen readers
  one("state").className = `state ${study.state}`;
  const bar = one("progress");
  bar.hidden = study.budget === null;
  if (study.budget !== null) {
    bar.max = study.budget;
    bar.value = Math.min(study.used, study.budget);
  }
  one("used").textContent = study.budget === null ? `${cell(study.used)} ${study.unit} used, without a budget`
    : `${cell(study.used)} of ${cell(study.budget)} ${study.unit} used (${cell((100 * study.used) / study.budget)} %)`;
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

// What the study shows beside its chains: a section and a table each.
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

// At most one round of looking at a time, and one more if something happened meanwhile.
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
  charts.reserve(study.chains);
  // The charts stand above the table, which must not move once there is something to click on; but nobody waits long.
  await Promise.race([charts.refresh(), pause(500)]);
  await table.start(openChain);
  for (const event of await get("/api/log")) showEvent(event);
  performance.mark("chainscout-shown");
} catch (error) {
  fail(error.message);
}
listen();
