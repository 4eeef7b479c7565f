// One chain: a window of its matrix as a grid. The arrow keys move from cell to cell.
import { cell, get, make, one, pairs, write } from "./format.js";

const SIZE = 20;
let shown = null; // { number, row, column, chain }
let back = null; // what had the focus before
let drawn = ""; // what the cells of the matrix stand for

export async function open(number, from = null) {
  back = from ?? back;
  shown = { number, row: 0, column: 0, chain: null };
  await load();
  one("chain").hidden = false;
  one("chain").focus();
}

export function close() {
  one("chain").hidden = true;
  hideTip();
  shown = null;
  back?.focus();
}

export const current = () => (shown === null ? null : shown.number);

export const refresh = () => (shown === null ? null : load());

async function load() {
  const asked = shown;
  const chain = await get(`/api/numbered/${asked.number}?row=${asked.row}&column=${asked.column}&size=${SIZE}`);
  if (asked !== shown) return;
  shown.chain = chain;
  draw();
}

function draw() {
  const { line, window: part, sure, facts, unknown, words } = shown.chain;
  one("chain-title").replaceChildren("Chain ", make("bdi", {}, line.label));
  pairs(one("chain-figures"), facts);
  one("unknown").textContent = unknown;
  const labels = [...part.rows.map((state) => state.label), ...part.columns];
  const signature = JSON.stringify([shown.number, part.row, part.column, labels]);
  if (signature !== drawn) {
    build(part);
    drawn = signature;
  }
  part.rows.forEach((state, x) => {
    const row = one("matrix").tBodies[0].rows[x];
    row.className = state.left;
    part.columns.forEach((_, y) => fill(row.cells[y + 1], part, x, y, sure));
    const [exits, law, mark] = [...row.cells].slice(-3);
    write(exits, cell(state.exits));
    write(law, cell(state.stationary));
    write(mark, state.mark);
    write(row.cells[0].lastChild, ` ${state.sign}`);
  });
  one("matrix-help").textContent = words;
  one("matrix-file").href = `/download/${shown.number}/matrix.csv`;
  pager(line.states, part);
}

function build(part) {
  const number = { scope: "col", class: "number" };
  const head = make("tr", {}, make("th", { scope: "col" }, "from ╲ to"),
    ...part.columns.map((label) => make("th", { scope: "col", title: label }, make("bdi", {}, label))),
    make("th", number, "exits"), make("th", number, "π̂"), make("th", { scope: "col" }, "known?"));
  const rows = part.rows.map((state) => make("tr", {}, make("th", { scope: "row", title: state.label }, make("bdi", {}, state.label), make("span", { class: "mark", "aria-hidden": "true" })),
    ...part.columns.map(() => make("td", { class: "p", role: "gridcell", tabindex: "-1" })),
    make("td", { class: "number" }), make("td", { class: "number" }), make("td", { class: "mark" })));
  one("matrix").replaceChildren(make("thead", {}, head), make("tbody", {}, ...rows));
  cells()[0]?.[0]?.setAttribute("tabindex", "0");
}

function fill(element, part, x, y, sure) {
  const state = part.rows[x];
  const words = `${state.label} → ${part.columns[y]}: ${cell(part.matrix[x][y])}, between ${cell(part.lower[x][y])} and ${cell(part.upper[x][y])} ${sure}; seen ${cell(part.transitions[x][y])} times in ${cell(state.exits)} exits${state.mark && `; the row was ${state.mark}`}`;
  element.setAttribute("aria-label", words);
  write(element, part.matrix[x][y].toFixed(2));
  element.style.setProperty("--p", part.matrix[x][y].toFixed(3));
}

function pager(states, part) {
  if (states <= SIZE) {
    one("window").replaceChildren();
    return;
  }
  const button = (words, row, column) => {
    const made = make("button", { type: "button" }, words);
    made.disabled = row < 0 || column < 0 || row >= states || column >= states;
    made.addEventListener("click", () => move(row, column));
    return made;
  };
  const { row, column } = part;
  one("window").replaceChildren(
    make("span", {}, `rows ${row + 1}–${row + part.rows.length}, columns ${column + 1}–${column + part.columns.length} of ${cell(states)}`),
    button("↑ rows", row - SIZE, column), button("↓ rows", row + SIZE, column),
    button("← columns", row, column - SIZE), button("→ columns", row, column + SIZE));
}

function move(row, column) {
  shown = { ...shown, row, column };
  return load();
}

const cells = () => [...one("matrix").querySelectorAll("tbody tr")].map((row) => [...row.querySelectorAll("td.p")]);

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

one("matrix").addEventListener("keydown", async (event) => {
  const grid = cells();
  const x = grid.findIndex((row) => row.includes(event.target));
  if (x < 0) return;
  const y = grid[x].indexOf(event.target);
  let goal = null;
  if (event.key in STEPS) goal = [x + STEPS[event.key][0], y + STEPS[event.key][1]];
  else if (event.key === "Home") goal = [event.ctrlKey ? 0 : x, 0];
  else if (event.key === "End") goal = [event.ctrlKey ? grid.length - 1 : x, grid[0].length - 1];
  else if (event.key === "Escape") return hideTip();
  if (goal === null) return;
  event.preventDefault();
  const states = shown.chain.line.states;
  const row = shown.row + goal[0];
  const column = shown.column + goal[1];
  if (row < 0 || column < 0 || row >= states || column >= states) return;
  const start = (place) => Math.floor(place / SIZE) * SIZE;
  if (start(row) !== shown.row || start(column) !== shown.column) await move(start(row), start(column));
  focus(row - shown.row, column - shown.column);
});

function focus(x, y) {
  const grid = cells();
  for (const cellOf of grid.flat()) cellOf.setAttribute("tabindex", "-1");
  grid[x][y].setAttribute("tabindex", "0");
  grid[x][y].focus();
}

function showTip(element) {
  const tip = one("tip");
  tip.textContent = element.getAttribute("aria-label");
  tip.hidden = false;
  const box = element.getBoundingClientRect();
  const left = Math.max(4, Math.min(box.left, document.documentElement.clientWidth - tip.offsetWidth - 4));
  tip.style.left = `${left + scrollX}px`;
  // Below the cell, where it hides no label of a column; above if there is no room.
  const below = box.bottom + 6 + tip.offsetHeight <= innerHeight;
  tip.style.top = `${(below ? box.bottom + 6 : box.top - tip.offsetHeight - 6) + scrollY}px`;
}

function hideTip() {
  one("tip").hidden = true;
}

for (const [name, act] of [["focusin", showTip], ["mouseover", showTip], ["focusout", hideTip], ["mouseout", hideTip]]) {
  one("matrix").addEventListener(name, (event) => { if (event.target.matches?.("td.p")) act(event.target); });
}
one("close").addEventListener("click", close);
one("chain").addEventListener("keydown", (event) => { if (event.key === "Escape") close(); });
