// The live page. The server writes its parts as HTML, and this script fetches them when the study has changed.

const one = (id) => document.getElementById(id);
const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
const asked = { study: "", chains: "", chain: null }; // part → the query that it shows; null: it is not open
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

// Fetches a part. Each of its elements takes the place of the element with the same id.
async function load(part) {
  const query = asked[part];
  if (query === null) return;
  one(part).setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(`/part/${part}?${query}`);
    if (query !== asked[part]) return; // there was a later request in the meantime
    if (!answer.ok) throw new Error((await answer.json()).error);
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html"); // it runs no script
    for (const element of [...fresh.body.children]) morph(one(element.id), element);
    readAgain();
    document.title = `${one("title").textContent} – chainscout`;
  } finally {
    one(part).removeAttribute("aria-busy");
  }
}

async function show(...parts) {
  try {
    await Promise.all(parts.map(load));
    if (parts.includes("study")) fail(null);
  } catch (error) {
    fail(error.message);
  }
}

function fail(sentence) {
  one("failure").hidden = sentence === null;
  one("failure").textContent = sentence ?? "";
  if (sentence === null) one("main").hidden = false; // it is hidden until there is something to show
  else Object.assign(one("state"), { textContent: "failed", className: "state failed" });
}

// Buttons say which part they change and what to ask for.
document.addEventListener("click", ({ target }) => {
  const { part, ask } = target.closest("[data-part]")?.dataset ?? {};
  if (part === "chains") askChains(ask);
  if (part === "chain") openChain(ask, target.closest("[data-part]"));
  if (target.id === "close") close();
});

function askChains(query) {
  asked.chains = query;
  return show("chains");
}

let waiting = null;
one("search").addEventListener("input", ({ target }) => {
  clearTimeout(waiting);
  const query = new URLSearchParams(asked.chains);
  query.set("search", target.value);
  query.delete("page");
  waiting = setTimeout(() => askChains(query.toString()), 120);
});
one("find").addEventListener("submit", (event) => event.preventDefault());

async function openChain(query, from = null) {
  if (from !== null && !one("chain").contains(from)) back = from;
  asked.chain = query;
  asked.study = `chain=${new URLSearchParams(query).get("number")}`;
  await show("chain");
  if (!one("chain").contains(document.activeElement)) one("chain").focus();
  show("study");
}

function close() {
  one("chain").hidden = one("tip").hidden = true;
  Object.assign(asked, { study: "", chain: null });
  back?.focus();
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
  one("matrix").tBodies[0].rows[x - top].cells[y - left + 1].focus();
});

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
    await show("study", "chain", ...(one("chains").querySelector("tbody:focus-within") ? [] : ["chains"]));
    await pause(700);
  }
  looking = false;
}

function listen() {
  const source = new EventSource("/api/events");
  source.addEventListener("study", look);
  source.addEventListener("failed", (message) => fail(JSON.parse(message.data).error));
  source.addEventListener("error", () => {
    fail("the server does not answer; what is shown is from before");
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
  });
}

// The cookie lets the browser in now, so the address need not show the token any more.
if (location.search) history.replaceState(null, "", location.pathname);
await show("study");
await show("chains");
performance.mark("chainscout-shown");
listen();
