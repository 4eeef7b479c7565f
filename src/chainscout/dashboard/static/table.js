// The table of chains. The server searches, sorts and pages, and sends one page.
import { cell, get, make, one, write } from "./format.js";

// Field → what the server sorts by.
const SORTS = { label: "name", states: "states", observations: "observations", certificate: "certificate", index: "index" };
const isNumber = (field) => field !== "label" && field !== "aside";
let columns = []; // heading and field of each column, as the server names them
const asked = { search: "", sort: "number", descending: false, page: 1 };
let open = () => {};
let pages = 1;
let round = 0;

export function start(openChain) {
  open = openChain;
  const head = one("table").tHead.rows[0];
  head.addEventListener("click", (event) => {
    const sort = event.target.dataset?.sort;
    if (!sort) return;
    // Numbers begin with the largest, names with the first.
    asked.descending = asked.sort === sort ? !asked.descending : sort !== "name";
    Object.assign(asked, { sort, page: 1 });
    load();
  });
  one("table").tBodies[0].addEventListener("click", (event) => {
    const number = event.target.dataset?.number;
    if (number !== undefined) open(Number(number), event.target);
  });
  let waiting = null;
  one("search").addEventListener("input", (event) => {
    clearTimeout(waiting);
    waiting = setTimeout(() => { Object.assign(asked, { search: event.target.value, page: 1 }); load(); }, 120);
  });
  one("find").addEventListener("submit", (event) => event.preventDefault());
  const moves = { first: () => 1, previous: () => asked.page - 1, next: () => asked.page + 1, last: () => pages };
  for (const [id, page] of Object.entries(moves)) {
    one(id).addEventListener("click", () => { asked.page = Math.min(pages, Math.max(1, page())); load(); });
  }
  return load();
}

// The table does not change while it has the focus, because a row that moves under a finger is another row.
export const refresh = () => (one("table").tBodies[0].matches(":focus-within") ? null : load());

async function load() {
  const mine = ++round;
  one("table").setAttribute("aria-busy", "true");
  const query = new URLSearchParams({ ...asked, descending: String(asked.descending) });
  let found;
  try {
    found = await get(`/api/chains?${query}`);
  } catch (error) {
    one("found").textContent = error.message;
    one("table").removeAttribute("aria-busy");
    return;
  }
  if (mine !== round) return; // there was a later request in the meantime
  pages = found.pages;
  one("table").removeAttribute("aria-busy");
  show(found);
}

function show(found) {
  if (columns.length === 0) {
    columns = found.columns;
    one("table").tHead.rows[0].append(...columns.map(([title, field]) => make("th", { scope: "col", class: isNumber(field) ? "number" : null },
      field in SORTS ? make("button", { type: "button", "data-sort": SORTS[field], "data-title": title }, title) : title)));
  }
  for (const header of one("table").tHead.rows[0].cells) {
    const { sort, title } = header.querySelector("button")?.dataset ?? {};
    if (sort === asked.sort) header.setAttribute("aria-sort", asked.descending ? "descending" : "ascending");
    else header.removeAttribute("aria-sort");
    if (sort) header.firstChild.textContent = title + (sort === asked.sort ? (asked.descending ? " ▾" : " ▴") : "");
  }
  // Rows stay and their texts change, so that a refresh never loses a click or the focus.
  const body = one("table").tBodies[0];
  while (body.rows.length > found.chains.length) body.lastChild.remove();
  while (body.rows.length < found.chains.length) body.append(emptyRow());
  found.chains.forEach((line, place) => {
    const { cells } = body.rows[place];
    columns.forEach(([, field], column) => write(column === 0 ? cells[0].firstChild : cells[column], cell(line[field])));
    cells[0].firstChild.dataset.number = line.number;
  });
  one("found").textContent = found.total === 0 ? "no chain has such a name" : `${cell(found.total)} chain${found.total === 1 ? "" : "s"}`;
  one("place").textContent = `page ${cell(found.page)} of ${cell(found.pages)}`;
  one("first").disabled = one("previous").disabled = found.page <= 1;
  one("next").disabled = one("last").disabled = found.page >= found.pages;
}

function emptyRow() {
  return make("tr", {}, ...columns.map(([, field]) => {
    if (field === "label") return make("td", {}, make("button", { type: "button", dir: "auto" }));
    return make("td", { class: isNumber(field) ? "number" : null });
  }));
}
