// Numbers as text, by the rules of chainscout's own tables, and small helpers for the document.

export function cell(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "—";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return Math.abs(value) < 1e15 ? value.toLocaleString("en-US") : value.toExponential(3);
  if (value !== 0 && (Math.abs(value) >= 1e6 || Math.abs(value) < 1e-4)) return value.toExponential(3);
  const digits = Math.min(7, Math.max(0, 3 - Math.floor(Math.log10(Math.abs(value)))));
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

// A number that somebody set, without digits that nobody gave.
export function given(value) {
  if (value === null || value === undefined) return "—";
  const short = Number(value.toPrecision(6));
  return short !== 0 && Math.abs(short) < 1e-4 ? short.toExponential() : String(short);
}

export function moment(seconds) {
  return new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19);
}

// An element. Text is only ever set as text, whatever the name of a chain is.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined).map((child) =>
    child instanceof Node ? child : document.createTextNode(String(child))));
  return element;
}

// Sets the text of an element if it changes.
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export const one = (id) => document.getElementById(id);

export function pairs(list, entries) {
  if (list.children.length !== entries.length) {
    list.replaceChildren(...entries.map(([name]) => make("div", {}, make("dt", {}, name), make("dd"))));
  }
  entries.forEach(([, value], place) => {
    write(list.children[place].lastChild, value);
    list.children[place].className = value.length > 40 ? "wide" : ""; // a sentence has a line to itself
  });
}

// JSON from the server. Throws an error with the server's own sentence.
export async function get(address) {
  const answer = await fetch(address, { headers: { accept: "application/json" } });
  const found = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok) throw new Error(found.error);
  return found;
}
