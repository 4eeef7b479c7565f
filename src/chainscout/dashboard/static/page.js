// The live page. The server writes its parts as HTML, and this script fetches them when the study has changed.

const one = (id) => document.getElementById(id);
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
const AWAY = "the server does not answer; what is shown is from before";
const asked = { study: "", charts: "", chains: "", chain: null }; // part → the query that it shows; null: it is not open
const latest = {}; // part → its latest request, which ends when the part is shown
const failures = new Map(); // a part, or the server → what is wrong with it
let back = null; // what had the focus before a chain was opened
let readAgain = () => {}; // shows the values under the pointer in a chart's legend

// Makes an element like a fresh one. What is the same is not touched, so that a refresh loses no click and no focus.
function morph(old, fresh) {
  if (old.nodeName !== fresh.nodeName) {
    old.replaceWith(fresh);
  } else if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
  } else {
    for (const { name } of [...old.attributes]) if (!fresh.hasAttribute(name)) old.removeAttribute(name);
    for (const { name, value } of fresh.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    const children = [...fresh.childNodes];
    while (old.childNodes.length > children.length) old.lastChild.remove();
    children.forEach((child, place) => (old.childNodes[place] ? morph(old.childNodes[place], child) : old.append(child)));
  }
}

// Fetches parts and shows them. Each of their elements takes the place of the element with the same id.
const show = (...parts) => Promise.all(parts.filter((part) => asked[part] !== null).map((part) => {
  const mine = {};
  latest[part] = mine;
  mine.done = load(part, mine);
  return mine.done;
}));

async function load(part, mine) {
  let text = "";
  let failure = null;
  try {
    const answer = await fetch(`/part/${part}?${asked[part]}`);
    text = await answer.text();
    if (!answer.ok) failure = JSON.parse(text).error;
  } catch {
    failure = AWAY;
  }
  if (latest[part] !== mine) return latest[part]?.done; // there was a later request in the meantime
  one(part).removeAttribute("aria-busy");
  fail(part, failure);
  if (failure !== null) return undefined;
  if (part === "study") fail("server", null);
  const fresh = new DOMParser().parseFromString(text, "text/html"); // it runs no script
  for (const element of [...fresh.body.children]) morph(one(element.id), element);
  rove(document.activeElement);
  readAgain();
  if (one("now").firstChild && one("charts").firstChild) one("main").hidden = false; // there is something to show
  document.title = `${one("title").textContent} – chainscout`;
  return undefined;
}

function fail(what, why) {
  failures.delete(what);
  if (why !== null) failures.set(what, why);
  const last = [...failures.values()].at(-1) ?? "";
  one("failure").hidden = last === "";
  one("failure").textContent = last;
  if (failures.has("server") || failures.has("study")) Object.assign(one("state"), { textContent: "failed", className: "state failed" });
}

// Buttons say which part they change and what to ask for.
function ask(part, query) {
  asked[part] = query;
  one(part).setAttribute("aria-busy", "true");
  return show(part);
}

document.addEventListener("click", ({ target }) => {
  const button = target.closest("[data-part]");
  if (button?.dataset.part === "chains") askChains(button.dataset.ask);
  if (button?.dataset.part === "chain") openChain(button.dataset.ask, button);
  if (target.id === "close") close();
});

// What changes, beside what is asked already and what stands in the search box.
let waiting = null;
function askChains(changes) {
  clearTimeout(waiting);
  const query = new URLSearchParams([...new URLSearchParams(asked.chains), ["search", one("search").value], ...new URLSearchParams(changes)]);
  return ask("chains", new URLSearchParams(Object.fromEntries(query)).toString()); // the last of several values counts
}

one("search").addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(askChains, 120, "page=1");
});
one("find").addEventListener("submit", (event) => event.preventDefault());

async function openChain(query, from = null) {
  if (from !== null && !one("chain").contains(from)) back = from;
  asked.charts = `chain=${new URLSearchParams(query).get("number")}`;
  await ask("chain", query);
  if (asked.chain !== query || failures.has("chain")) return;
  if (!one("chain").contains(document.activeElement)) one("chain").focus();
  show("charts");
}

function close() {
  latest.chain = null; // an answer that is under way comes too late
  one("chain").hidden = one("tip").hidden = true;
  Object.assign(asked, { charts: "", chain: null });
  fail("chain", null);
  back?.focus();
  show("charts");
}

// The matrix is a grid: the arrow keys move from cell to cell, and the window moves along.
const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

document.addEventListener("keydown", async (event) => {
  if (event.key === "Escape" && one("chain").contains(event.target)) close();
  if (!event.target.matches("td.p")) return;
  const rows = [...one("matrix").tBodies[0].rows];
  const [number, row, column, states, size] = ["number", "row", "column", "states", "size"].map((key) => Number(one("matrix").dataset[key]));
  let x = row + event.target.parentElement.sectionRowIndex;
  let y = column + event.target.cellIndex - 1;
  if (event.key in STEPS) [x, y] = [x + STEPS[event.key][0], y + STEPS[event.key][1]];
  else if (event.key === "Home") [x, y] = [event.ctrlKey ? row : x, column];
  else if (event.key === "End") [x, y] = [event.ctrlKey ? row + rows.length - 1 : x, column + rows[0].querySelectorAll("td.p").length - 1];
  else return;
  event.preventDefault();
  if (x < 0 || y < 0 || x >= states || y >= states) return;
  const [top, left] = [x, y].map((place) => Math.floor(place / size) * size);
  if (top !== row || left !== column) await openChain(`number=${number}&row=${top}&column=${left}`);
  const shown = one("matrix")?.dataset ?? {};
  if (shown.number !== String(number) || shown.row !== String(top) || shown.column !== String(left)) return; // it did not come
  one("matrix").tBodies[0].rows[x - top].cells[y - left + 1].focus();
});

// The tab key reaches one cell of the matrix: the one that had the focus last.
function rove(cell) {
  if (!cell.matches("td.p")) return;
  for (const other of one("matrix").querySelectorAll("td.p[tabindex='0']")) other.tabIndex = -1;
  cell.tabIndex = 0;
}

// A cell that has the focus or is under the pointer shows its interval: below it, or above if there is no room.
function showTip(cell) {
  const tip = one("tip");
  tip.hidden = cell === null;
  if (cell === null) return;
  tip.textContent = cell.getAttribute("aria-label");
  const box = cell.getBoundingClientRect();
  const left = Math.max(4, Math.min(box.left, document.documentElement.clientWidth - tip.offsetWidth - 4));
  const fits = box.bottom + 6 + tip.offsetHeight <= innerHeight;
  tip.style.left = `${left + scrollX}px`;
  tip.style.top = `${(fits ? box.bottom + 6 : box.top - tip.offsetHeight - 6) + scrollY}px`;
}

// The legend of a chart has the values where the pointer is; without a pointer, those of now.
function read(chart, place) {
  const entries = chart.parentElement.querySelectorAll("li[data-read]");
  chart.querySelectorAll("polyline").forEach(({ points }, line) => {
    let nearest = points.length - 1;
    while (nearest > 0 && points[nearest].x > place) nearest -= 1;
    entries[line].lastChild.data = `: ${entries[line].dataset.read.split("|")[nearest]}`;
  });
}

document.addEventListener("focusin", ({ target }) => rove(target));
for (const name of ["focusin", "mouseover", "focusout", "mouseout"]) {
  document.addEventListener(name, ({ target }) => { if (target.matches?.("td.p")) showTip(name.endsWith("out") ? null : target); });
}
for (const name of ["mousemove", "mouseout"]) {
  document.addEventListener(name, ({ target, clientX }) => {
    const chart = target.closest?.("svg.chart");
    if (!chart) return;
    const { left, width } = chart.getBoundingClientRect();
    readAgain = () => read(chart, name === "mouseout" ? Infinity : ((clientX - left) / width) * chart.viewBox.baseVal.width);
    readAgain();
  });
}

// One round of requests at a time, and one more if something happened in the meantime.
let looking = false;
let again = false;
async function look() {
  again = true;
  if (looking) return;
  looking = true;
  while (again) {
    again = false;
    await pause(300); // the server may give answers of a moment ago
    // The table does not change while it has the focus, because a row that moves under a finger is another row.
    await show("study", "charts", "chain", ...(one("chains").querySelector("tbody:focus-within") ? [] : ["chains"]));
    await pause(700);
  }
  looking = false;
}

function listen() {
  const source = new EventSource("/api/events");
  source.addEventListener("study", look);
  source.addEventListener("failed", (message) => fail("server", JSON.parse(message.data).error));
  source.addEventListener("error", () => {
    if (source.readyState !== EventSource.CLOSED) return fail("server", AWAY);
    setTimeout(listen, 2000);
    return show("study"); // it says why the stream was refused
  });
}

// The cookie lets the browser in now, so the address need not show the token any more.
if (location.search) history.replaceState(null, "", location.pathname);
await show("study", "charts");
await show("chains"); // then nothing above the table changes its height
performance.mark("chainscout-shown");
listen();
