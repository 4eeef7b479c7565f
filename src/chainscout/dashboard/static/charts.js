// Certificates and shares over time, drawn by uPlot; lines differ in dashes as well as in colour.
import { cell, get, given, make, one } from "./format.js";

const DASHES = [[], [9, 4], [3, 3], [12, 4, 3, 4], [6, 6], [1, 3]];
const drawn = {};
let latest = null;
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
    found = { ...found, curves: [...own.curves, ...found.curves].slice(0, 6) };
  }
  latest = found;
  draw();
  return found.curves.every((curve) => curve.complete);
}

export function draw() {
  if (latest === null) return;
  plot("certificate", "certificate", true, latest.target_loss);
  plot("share", "share", false, null);
}

function plot(id, key, logarithmic, target) {
  const curves = latest.curves.filter((curve) => curve[key].some((value) => value !== null));
  const box = one(id);
  const signature = `${curves.map((curve) => curve.number)}|${target}|${box.clientWidth}|${colour("--ink")}`;
  legend(id, key, curves, target);
  if (curves.length === 0) {
    drawn[id]?.chart.destroy();
    delete drawn[id];
    box.replaceChildren(make("p", { class: "dim" }, "nothing to draw yet"));
    return;
  }
  const tables = curves.map((curve) => [curve.observations, curve[key]]);
  const data = tables.length === 1 ? tables[0] : uPlot.join(tables);
  if (target) data.push(data[0].map(() => target));
  if (drawn[id]?.signature === signature) {
    drawn[id].chart.setData(data);
    return;
  }
  drawn[id]?.chart.destroy();
  box.replaceChildren();
  const axis = { stroke: colour("--ink"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
  const series = curves.map((curve, place) => ({
    label: curve.label, stroke: colour(`--s${place % 6}`), dash: DASHES[place % 6], width: 2, spanGaps: true, points: { show: false },
  }));
  if (target) series.push({ label: "target", stroke: colour("--ink"), dash: [2, 4], width: 1.5, points: { show: false } });
  const values = (chart, ticks) => ticks.map((tick) => (tick === null ? "" : given(tick)));
  // On a logarithmic axis only the ticks that have a label get a line.
  const few = (chart, ticks) => ticks.map((tick) => (Number.isInteger(Math.log10(tick)) || chart.scales.y.max / chart.scales.y.min < 30 ? tick : null));
  const upwards = { ...axis, size: 66, values, ...(logarithmic ? { grid: { ...axis.grid, filter: few }, ticks: { ...axis.ticks, filter: few } } : {}) };
  const chart = new uPlot({
    width: Math.max(200, box.clientWidth), height: 260, legend: { show: false }, cursor: { y: false },
    scales: { x: { time: false }, y: logarithmic ? { distr: 3 } : { range: () => [0, highest(curves, key)] } },
    axes: [{ ...axis, label: "observations of the whole study", labelSize: 22, size: 36, values }, upwards],
    series: [{}, ...series],
    hooks: { setCursor: [(u) => legend(id, key, curves, target, u)] },
  }, data, box);
  drawn[id] = { chart, signature };
}

// The first observations, when a single chain has them all, do not set the scale.
function highest(curves, key) {
  const end = Math.max(...curves.map((curve) => curve.observations.at(-1)));
  const late = curves.flatMap((curve) => curve[key].filter((_, place) => curve.observations[place] >= end / 20));
  return Math.min(1, 1.15 * Math.max(...late, 1e-12));
}

function legend(id, key, curves, target, chart = null) {
  const index = chart?.cursor?.idx ?? null;
  const at = index === null ? null : chart.data[0][index];
  const entries = curves.map((curve, place) => {
    let last = curve[key].length - 1;
    if (at !== null) while (last > 0 && curve.observations[last] > at) last -= 1;
    const extra = key !== "share" ? "" : [["η̂", curve.plug_in], ["aim", curve.aim]]
      .filter(([, value]) => value !== null).map(([name, value]) => `, ${name} ${cell(value)}`).join("");
    const words = `: ${cell(curve[key][last])}${at === null ? " now" : ` at ${cell(curve.observations[last])}`}${extra}`;
    return make("li", {}, sample(`--s${place % 6}`, DASHES[place % 6]), make("bdi", {}, curve.label), words);
  });
  if (target) entries.push(make("li", {}, sample("--ink", [2, 4]), `target: ${given(target)}`));
  one(`${id}-legend`).replaceChildren(...entries);
  const words = curves.map((curve) => `${curve.label} ${cell(curve[key].at(-1))}`).join(", ");
  one(id).setAttribute("aria-label", `${id === "share" ? "allocation" : id} over time; now ${words || "nothing yet"}`);
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
