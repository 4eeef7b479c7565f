// Certificates and shares over time, drawn by uPlot; lines differ in dashes as well as in colour.
import { cell, get, given, make, one } from "./format.js";

const MOST = 6; // chains that are drawn at once
const STYLES = ["--s0", "--s1", "--s2", "--s3", "--s4", "--s5"];
const DASHES = [[], [9, 4], [3, 3], [12, 4, 3, 4], [6, 6], [1, 3]];
// What a chain's share is held against.
const SHARES = [["share", "share"], ["η̂", "plug_in"], ["aim", "aim"]];
const drawn = new Map(); // the element that a chart is in → the chart and what it was made for
let latest = null;
let evidence = null; // what the panel of the checks draws
let cards = []; // the questions, with their answers over time
let chosen = null; // the number of the chain that is open

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function choose(number) {
  chosen = number;
  return refresh();
}

export async function refresh() {
  let found = await get("/api/curves");
  if (chosen !== null && !found.curves.some((curve) => curve.number === chosen)) {
    const own = await get(`/api/curves?chain=${chosen}`);
    found = { ...found, curves: [...own.curves, ...found.curves].slice(0, MOST) };
  }
  latest = found;
  cards = await get("/api/questions");
  draw();
}

export function draw() {
  drawEvidence();
  if (latest === null) return;
  drawCertificates();
  drawShares();
  drawCards();
}

// What a panel draws: the evidence of the checks over time, and the level at which it speaks against an assumption.
export function showEvidence(drawing) {
  evidence = drawing;
  one("evidence-section").hidden = drawing === null;
  drawEvidence();
}

function drawEvidence() {
  if (evidence === null) return;
  one("evidence-note").textContent = `${evidence.title}; a check ${evidence.level_name} from ${given(evidence.level)} on.`;
  const lines = evidence.names.map((label, place) => ({ label, style: place % 6, x: evidence.x[place], y: evidence.y[place] }));
  const all = [...new Set(evidence.x.flat())].sort((a, b) => a - b);
  lines.push({ label: evidence.level_name, x: all, y: all.map(() => evidence.level), style: null, given: evidence.level });
  plot(one("evidence"), one("evidence-legend"), "evidence over time", lines, { logarithmic: true, height: 260, across: evidence.across });
}

function drawCertificates() {
  const { curves, target_loss: target } = latest;
  const lines = curves.map((curve, place) => ({ label: curve.label, style: place % 6, ...present(curve.observations, curve.certificate) }));
  const longest = lines.find((line) => line.x.length > 0);
  if (target) lines.push({ label: "target", x: longest?.x ?? [], y: longest?.x.map(() => target) ?? [], style: null, given: target });
  plot(one("certificate"), one("certificate-legend"), "certificate over time", lines, { logarithmic: true, height: 260 });
}

// Room for the small charts of so many chains.
export function reserve(chains) {
  const box = one("share");
  const number = Math.min(chains, MOST);
  while (box.children.length > number) {
    drawn.get(box.lastChild.querySelector(".chart"))?.chart.destroy();
    drawn.delete(box.lastChild.querySelector(".chart"));
    box.lastChild.remove();
  }
  while (box.children.length < number) {
    box.append(make("figure", {}, make("figcaption", {}, make("bdi")), make("div", { class: "chart small", role: "img", "aria-label": "nothing drawn yet" }), make("ul", { class: "legend" })));
  }
}

// One small chart a chain: its share, and what it is held against.
function drawShares() {
  const box = one("share");
  const { curves } = latest;
  reserve(curves.length);
  curves.forEach((curve, place) => {
    const [caption, chart, legend] = box.children[place].children;
    if (caption.textContent !== curve.label) caption.firstChild.textContent = curve.label;
    const values = { ...curve, aim: curve.observations.map(() => curve.aim) }; // of now, held against all that was
    const lines = SHARES.map(([label, key], style) => ({ label, style, ...present(curve.observations, values[key]) }));
    plot(chart, legend, `allocation to ${curve.label} over time`, lines, { top: highest(lines), height: 190, small: true });
  });
}

// A card a question: its interval over time, what it is to become, and what it waits for.
function drawCards() {
  const box = one("cards");
  one("questions").hidden = cards.length === 0;
  while (box.children.length < cards.length) {
    box.append(make("figure", {}, make("figcaption", {}, make("bdi")), make("div", { class: "chart small", role: "img", "aria-label": "nothing drawn yet" }), make("ul", { class: "legend" }), make("ul", { class: "dim notes" })));
  }
  cards.forEach((card, place) => {
    const [caption, chart, list, notes] = box.children[place].children;
    const title = `${card.chain}: ${card.question}`;
    if (caption.textContent !== title) caption.firstChild.textContent = title;
    const lines = [["at most", card.uppers], ["estimate", card.estimates], ["at least", card.lowers]].map(([label, values], style) => ({ label, style, ...present(card.observations, values) }));
    if (card.limit !== null) lines.push({ label: "limit", x: card.observations, y: card.observations.map(() => card.limit), style: null, given: card.limit });
    const end = card.observations.at(-1) ?? 0;
    const late = card.uppers.filter((_, at) => card.observations[at] >= end / 20);
    plot(chart, list, title, lines, { top: 1.15 * Math.max(...late, card.limit ?? 0, 1e-12), bottom: Math.min(0, ...card.lowers), height: 190, small: true });
    const wide = card.width === null ? "infinitely wide" : `${cell(card.width)} wide`;
    const wanted = card.target_width === null ? "" : `, and is to be ${given(card.target_width)} wide`;
    const words = [`${card.met ? "Done" : "Not done"}: ${wide} with probability ${given(1 - card.delta)}${wanted}`, ...card.notes];
    notes.replaceChildren(...words.map((note) => make("li", {}, note)));
  });
}

function present(observations, values) {
  const places = values.map((_, place) => place).filter((place) => values[place] !== null);
  return { x: places.map((place) => observations[place]), y: places.map((place) => values[place]) };
}

// The first observations, when a single chain has them all, do not set the scale.
function highest(lines) {
  const end = Math.max(...lines.map((line) => line.x.at(-1) ?? 0));
  const late = lines.flatMap((line) => line.y.filter((_, place) => line.x[place] >= end / 20));
  return Math.min(1, 1.15 * Math.max(...late, 1e-12));
}

function plot(box, list, title, named, { logarithmic = false, top = null, bottom = 0, height, small = false, across = "observations of the whole study" }) {
  legend(box, list, title, named); // of all lines, so that it has its height before they can be drawn
  const lines = named.filter((line) => line.x.length > 0);
  if (lines.length === 0) {
    drawn.get(box)?.chart.destroy();
    drawn.delete(box);
    box.replaceChildren(make("p", { class: "dim" }, "nothing to draw yet"));
    return;
  }
  const tables = lines.map((line) => [line.x, line.y]);
  const data = tables.length === 1 ? tables[0] : uPlot.join(tables);
  const signature = JSON.stringify([lines.map((line) => [line.label, line.style]), box.clientWidth, colour("--ink")]);
  const known = drawn.get(box);
  if (known?.signature === signature) {
    Object.assign(known, { named, top, bottom });
    known.chart.setData(data);
    return;
  }
  known?.chart.destroy();
  box.replaceChildren();
  const made = { signature, named, top, bottom };
  const axis = { stroke: colour("--ink"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
  const series = lines.map(({ label, style }) => ({
    label, stroke: colour(style === null ? "--ink" : STYLES[style]), dash: style === null ? [2, 4] : DASHES[style],
    width: style === null ? 1.5 : 2, spanGaps: true, points: { show: false },
  }));
  const values = (chart, ticks) => ticks.map((tick) => (tick === null ? "" : tick < 1e6 ? given(tick) : tick.toExponential(0)));
  const whole = (chart, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? short(tick) : ""));
  // On a logarithmic axis only the ticks that have a label get a line.
  const few = (chart, ticks) => ticks.map((tick) => (Number.isInteger(Math.log10(tick)) || chart.scales.y.max / chart.scales.y.min < 30 ? tick : null));
  const upwards = { ...axis, size: small ? 52 : 66, space: small ? 24 : 30, values, ...(logarithmic ? { grid: { ...axis.grid, filter: few }, ticks: { ...axis.ticks, filter: few } } : {}) };
  made.chart = new uPlot({
    width: Math.max(200, box.clientWidth), height, legend: { show: false }, cursor: { y: false },
    scales: { x: { time: false }, y: logarithmic ? { distr: 3 } : { range: () => [made.bottom, made.top] } },
    axes: [{ ...axis, size: 36, values: whole, ...(small ? {} : { label: across, labelSize: 22 }) }, upwards],
    series: [{}, ...series],
    hooks: { setCursor: [(chart) => legend(box, list, title, made.named, chart)] },
  }, data, box);
  drawn.set(box, made);
}

// 20k, 3M: labels of an axis must not run into each other.
function short(value) {
  for (const [letter, size] of [["M", 1e6], ["k", 1e3]]) if (value >= 10 * size || (value >= size && letter === "M")) return `${given(value / size)}${letter}`;
  return String(value);
}

function legend(box, list, title, lines, chart = null) {
  const index = chart?.cursor?.idx ?? null;
  const at = index === null ? null : chart.data[0][index];
  list.replaceChildren(...lines.map((line) => {
    let place = line.x.length - 1;
    if (at !== null) while (place > 0 && line.x[place] > at) place -= 1;
    const when = place < 0 ? "" : at === null ? " now" : ` at ${cell(line.x[place])}`;
    const words = line.given ? `: ${given(line.given)}` : `: ${cell(line.y[place])}${when}`;
    const ink = line.style === null ? ["--ink", [2, 4]] : [STYLES[line.style], DASHES[line.style]];
    return make("li", {}, sample(...ink), make("bdi", {}, line.label), words);
  }));
  const words = lines.map((line) => `${line.label} ${cell(line.y.at(-1))}`).join(", ");
  box.setAttribute("aria-label", `${title}; now ${words || "nothing yet"}`);
}

function sample(name, dash) {
  const space = "http://www.w3.org/2000/svg";
  const picture = document.createElementNS(space, "svg");
  const line = document.createElementNS(space, "line");
  const settings = { x1: 0, x2: 40, y1: 5, y2: 5, stroke: `var(${name})`, "stroke-width": 3, "stroke-dasharray": dash.join(" ") };
  for (const [key, value] of Object.entries(settings)) line.setAttribute(key, value);
  picture.setAttribute("viewBox", "0 0 40 10");
  picture.setAttribute("aria-hidden", "true");
  picture.append(line);
  return picture;
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
new ResizeObserver(() => draw()).observe(one("certificate"));
