// Drawings of the server as charts of uPlot. Lines differ in dashes as well as in colour.
import { cell, get, given, make, one } from "./format.js";

const MOST = 6; // chains that are drawn at once
const DASHES = [[], [9, 4], [3, 3], [12, 4, 3, 4], [6, 6], [1, 3]];
const charts = new Map(); // the element of a chart → the chart, what it was made for, and its drawing
let latest = null; // the drawings of the study
let evidence = null; // the drawing of the checks
let chosen = null; // the number of the chain that is open

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function choose(number) {
  chosen = number;
  return refresh();
}

export async function refresh() {
  latest = await get(`/api/drawings${chosen === null ? "" : `?chain=${chosen}`}`);
  draw();
}

export function draw() {
  if (evidence !== null) plot(one("evidence").firstElementChild, evidence);
  if (latest === null) return;
  plot(one("certificate").firstElementChild, latest.certificate);
  plotAll("share", latest.shares);
  plotAll("cards", latest.questions);
  one("questions").hidden = latest.questions.length === 0;
}

export function showEvidence(drawing) {
  evidence = drawing;
  one("evidence-section").hidden = drawing === null;
  if (drawing !== null) reserve("evidence", 1, "chart");
  draw();
}

// Room for so many charts.
export function reserve(id, number, kind = "chart small") {
  const box = one(id);
  while (box.children.length > number) {
    forget(box.lastChild.querySelector(".chart"));
    box.lastChild.remove();
  }
  while (box.children.length < number) {
    box.append(make("figure", {}, make("figcaption", {}, make("bdi")), make("div", { class: kind, role: "img", "aria-label": "nothing drawn yet" }), make("ul", { class: "legend" }), make("ul", { class: "dim notes" })));
  }
}

export const reserveShares = (chains) => reserve("share", Math.min(chains, MOST));

function plotAll(id, drawings) {
  reserve(id, drawings.length);
  drawings.forEach((drawing, place) => plot(one(id).children[place], drawing));
}

function forget(box) {
  charts.get(box)?.chart.destroy();
  charts.delete(box);
}

function plot(figure, drawing) {
  const [caption, box, list, notes] = figure.children;
  if (caption.textContent !== drawing.title) caption.firstChild.textContent = drawing.title;
  notes.replaceChildren(...drawing.notes.map((note) => make("li", {}, note)));
  const lines = drawing.lines.map((line, place) => ({ ...line, ink: `--s${place % DASHES.length}`, dash: DASHES[place % DASHES.length], width: 2 }));
  if (drawing.level !== null) {
    const x = [...new Set(drawing.lines.flatMap((line) => line.x))].sort((a, b) => a - b);
    lines.push({ label: drawing.level_name, x, y: x.map(() => drawing.level), ink: "--ink", dash: [2, 4], width: 1.5, given: drawing.level });
  }
  legend(box, list, drawing.title, lines); // of all lines, so that the legend has its height before they are drawn
  const present = lines.filter((line) => line.x.length > 0);
  if (present.length === 0) {
    forget(box);
    box.replaceChildren(make("p", { class: "dim" }, "nothing to draw yet"));
    return;
  }
  const tables = present.map((line) => [line.x, line.y]);
  const data = tables.length === 1 ? tables[0] : uPlot.join(tables);
  const signature = JSON.stringify([present.map((line) => [line.label, line.ink]), box.clientWidth, colour("--ink")]);
  const known = charts.get(box);
  if (known?.signature === signature) {
    Object.assign(known, { lines, drawing });
    known.chart.setData(data);
    return;
  }
  forget(box);
  box.replaceChildren();
  const made = { signature, lines, drawing };
  const { small, logarithmic } = drawing;
  const axis = { stroke: colour("--ink"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
  const series = present.map(({ label, ink, dash, width }) => ({ label, stroke: colour(ink), dash, width, spanGaps: true, points: { show: false } }));
  const values = (chart, ticks) => ticks.map((tick) => (tick === null ? "" : tick < 1e6 ? given(tick) : tick.toExponential(0)));
  const whole = (chart, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? short(tick) : ""));
  // On a logarithmic axis only the ticks that have a label get a line.
  const few = (chart, ticks) => ticks.map((tick) => (Number.isInteger(Math.log10(tick)) || chart.scales.y.max / chart.scales.y.min < 30 ? tick : null));
  const upwards = { ...axis, size: small ? 52 : 66, space: small ? 24 : 30, values, ...(logarithmic ? { grid: { ...axis.grid, filter: few }, ticks: { ...axis.ticks, filter: few } } : {}) };
  made.chart = new uPlot({
    width: Math.max(200, box.clientWidth), height: small ? 190 : 260, legend: { show: false }, cursor: { y: false },
    scales: { x: { time: false }, y: logarithmic ? { distr: 3 } : { range: () => [made.drawing.bottom, made.drawing.top ?? 1] } },
    axes: [{ ...axis, size: 36, values: whole, ...(small ? {} : { label: drawing.across, labelSize: 22 }) }, upwards],
    series: [{}, ...series],
    hooks: { setCursor: [(chart) => legend(box, list, made.drawing.title, made.lines, chart)] },
  }, data, box);
  charts.set(box, made);
}

// 20k, 3M: labels of an axis must not run into each other.
function short(value) {
  for (const [letter, size] of [["M", 1e6], ["k", 1e3]]) if (value >= 10 * size || (value >= size && letter === "M")) return `${given(value / size)}${letter}`;
  return String(value);
}

// Names, samples and values of all lines: at the cursor of the chart, or now.
function legend(box, list, title, lines, chart = null) {
  const index = chart?.cursor?.idx ?? null;
  const at = index === null ? null : chart.data[0][index];
  list.replaceChildren(...lines.map((line) => {
    let place = line.x.length - 1;
    if (at !== null) while (place > 0 && line.x[place] > at) place -= 1;
    const when = place < 0 ? "" : at === null ? " now" : ` at ${cell(line.x[place])}`;
    const words = line.given ? `: ${given(line.given)}` : `: ${cell(line.y[place])}${when}`;
    return make("li", {}, sample(line.given ? "target" : `s${line.ink.at(-1)}`), make("bdi", {}, line.label), words);
  }));
  const words = lines.map((line) => `${line.label} ${cell(line.y.at(-1))}`).join(", ");
  box.setAttribute("aria-label", `${title}; now ${words || "nothing yet"}`);
}

function sample(style) {
  const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  picture.setAttribute("viewBox", "0 0 40 10");
  picture.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(picture.namespaceURI, "line");
  for (const [key, value] of Object.entries({ x1: 0, x2: 40, y1: 5, y2: 5, class: style })) line.setAttribute(key, value);
  picture.append(line);
  return picture;
}

reserve("certificate", 1, "chart");
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
new ResizeObserver(() => draw()).observe(one("certificate"));
