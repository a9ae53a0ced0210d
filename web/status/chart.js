/** One chart over time: a canvas of uPlot, a legend with values, and the same as a table. */

import { html, useEffect, useRef, useState } from "../app/view.js";
import { theme } from "../app/theme.js";
import { formatTime, language, t } from "../app/words.js";
import { Button } from "../design/components.js";
import { drawSpreads } from "./spread.js";

const TABLE_ROWS = 15;
const SPANS = [1, 2, 5, 15]; // minutes
const SYNC = "status";
const HALF_LABEL = 34; // pixels
let loading = null;

/** `series`: `{ key, label, colour (of --series-N), fill, step }`; `format` writes a value; `top` is the least upper end; `spread` the key of a histogram. */
export function Chart({ name, title, about, series, spread, format, points, minutes, top = 0, most, steps }) {
  const box = useRef(null);
  const [plot, setPlot] = useState(null);
  const [cursor, setCursor] = useState(null);
  const [asTable, setAsTable] = useState(false);
  const spreads = useRef([]);
  const shown = points.filter((point) => point.at >= (points.at(-1)?.at ?? 0) - minutes * 60_000);

  useEffect(() => {
    if (asTable) return undefined;
    let made = null;
    let isGone = false;
    const watch = new IntersectionObserver(async ([entry]) => {
      if (!entry.isIntersecting || made) return;
      watch.disconnect();
      loading ??= import("../vendor/uplot.js");
      const { default: UPlot } = await loading;
      if (isGone || !box.current) return; // an effect ends after its element is gone
      made = makePlot(UPlot, box.current, { series, format, top, most, steps, onCursor: setCursor, spreads: spread && spreads });
      setPlot(made);
    });
    watch.observe(box.current);
    const resized = new ResizeObserver(([entry]) => made?.setSize({ width: Math.floor(entry.contentRect.width), height: heightOf() }));
    resized.observe(box.current);
    return () => {
      isGone = true;
      watch.disconnect();
      resized.disconnect();
      made?.destroy();
      setPlot(null);
    };
  }, [theme.value, useSystemTheme(), language.value, asTable]);

  useEffect(() => {
    if (!plot) return;
    const end = (shown.at(-1)?.at ?? Date.now()) / 1000;
    // While the page is young the chart shows less time, so that there is something to see.
    const elapsed = (end - (shown[0]?.at ?? 0) / 1000) / 60;
    const span = SPANS.find((one) => one >= elapsed && one <= minutes) ?? minutes;
    spreads.current = shown.map((one) => one[spread]);
    plot.setData([shown.map((point) => point.at / 1000), ...series.map((one) => shown.map((point) => point[one.key] ?? null))], false);
    plot.setScale("x", { min: end - span * 60, max: end });
  }, [plot, points, minutes]);

  const point = cursor === null || asTable ? shown.at(-1) : shown[cursor] ?? shown.at(-1);
  const values = series.map((one) => ({ ...one, text: format(point?.[one.key]) }));
  const summary = `${title}. ${values.map((one) => `${t(one.label)}: ${one.text}`).join(", ")}`;
  return html`<figure class="chart card" data-chart=${name}>
    <figcaption class="chart-head"><h3 class="grow" title=${about}>${title}</h3>
      <${Button} small kind="quiet" icon=${asTable ? "activity" : "table"} aria-pressed=${asTable} label=${t(asTable ? "status.as.chart" : "status.as.table", { title })} onClick=${() => setAsTable(!asTable)} /></figcaption>
    <div class="legend">${values.map((one) => html`<div class="legend-item"><span class="swatch-line series-${one.colour}" aria-hidden="true"></span>
      <span class="legend-label">${t(one.label)}</span><span class="legend-value numbers" data-value=${one.key}>${one.text}</span></div>`)}
      ${spread && html`<div class="legend-item" title=${t("status.spread.about")}><span class="swatch-area series-2" aria-hidden="true"></span><span class="legend-label">${t("status.spread")}</span></div>`}</div>
    ${asTable ? html`<${Table} title=${title} series=${series} format=${format} points=${shown} />`
      : html`<div class="canvas" ref=${box} role="img" aria-label=${summary}></div>`}
  </figure>`;
}

function Table({ title, series, format, points }) {
  const step = Math.max(1, Math.ceil(points.length / TABLE_ROWS));
  const rows = points.filter((_, at) => (points.length - 1 - at) % step === 0).reverse();
  return html`<div class="scroll chart-table" tabindex="0" role="group" aria-label=${title}><table class="table"><thead><tr><th scope="col">${t("status.time")}</th>
    ${series.map((one) => html`<th scope="col" class="number">${t(one.label)}</th>`)}</tr></thead>
    <tbody>${rows.map((point) => html`<tr key=${point.at}><td class="numbers">${clock(point.at)}</td>${series.map((one) => html`<td class="number">${format(point[one.key])}</td>`)}</tr>`)}</tbody></table></div>`;
}

/** Charts are lower on a phone, where they stand under each other. */
function heightOf() {
  return matchMedia("(max-width: 40rem)").matches ? 104 : 132;
}

function clock(at) {
  return new Date(at).toLocaleTimeString(language.value, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

function useSystemTheme() {
  const query = matchMedia("(prefers-color-scheme: dark)");
  const [isDark, setDark] = useState(query.matches);
  useEffect(() => {
    const onChange = () => setDark(query.matches);
    query.addEventListener("change", onChange);
    return () => query.removeEventListener("change", onChange);
  }, []);
  return isDark;
}

function makePlot(UPlot, box, { series, format, top, most, steps, onCursor, spreads }) {
  const colour = colours(box);
  const font = `11px ${getComputedStyle(box).fontFamily}`;
  const axis = { stroke: colour("--ink-faint"), font, ticks: { show: false }, grid: { stroke: colour("--line"), width: 1 }, gap: 4 };
  return new UPlot({
    width: Math.max(100, Math.floor(box.clientWidth)),
    height: heightOf(),
    padding: [8, 4, 0, 0],
    legend: { show: false },
    select: { show: false },
    cursor: { y: false, drag: { x: false, y: false, setScale: false }, sync: { key: SYNC }, points: { size: 6 } },
    scales: { x: { time: true }, y: { range: (_, low, high) => [0, most ?? Math.max(top, niceTop(high ?? 0, steps))] } },
    axes: [
      { ...axis, grid: { show: false }, size: 22, space: 76, values: timeLabels, incrs: [15, 30, 60, 120, 300, 600] },
      { ...axis, size: 52, space: 34, incrs: steps, values: (_, ticks) => ticks.map((tick) => (tick === 0 ? "0" : format(tick))) },
    ],
    series: [{}, ...series.map((one) => ({
      stroke: colour(`--series-${one.colour}`), width: 1.75, spanGaps: false, points: { show: false },
      fill: one.fill ? colour(`--series-${one.colour}`).replace("rgb(", "rgba(").replace(")", ", 0.13)") : undefined,
      dash: one.dash ? [5, 4] : undefined,
      paths: one.step ? UPlot.paths.stepped({ align: 1 }) : undefined,
    }))],
    hooks: {
      setCursor: [(self) => onCursor(self.cursor.idx ?? null)],
      drawAxes: spreads ? [(self) => drawSpreads(self, spreads.current, colour("--series-2"))] : [],
    },
  }, [[], ...series.map(() => [])], box);
}

/** A label that the right edge would cut is left out. */
function timeLabels(self, ticks) {
  const { min, max } = self.scales.x;
  const write = max - min < 150 ? clock : formatTime;
  const room = ((max - min) * HALF_LABEL) / (self.bbox.width / devicePixelRatio);
  return ticks.map((tick) => (max - tick < room ? "" : write(tick * 1000)));
}

function niceTop(value, steps) {
  if (!(value > 0)) return 0;
  if (steps) {
    const step = steps.find((one) => one * 3 >= value * 1.05) ?? steps.at(-1);
    return Math.ceil((value * 1.05) / step) * step;
  }
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((one) => one >= value * 1.05) ?? value * 1.2;
}

/** A canvas does not know the tokens: the browser says what they are in this theme. */
function colours(box) {
  const probe = document.createElement("i");
  box.append(probe);
  const read = {};
  return (token) => {
    probe.style.color = `var(${token})`;
    read[token] ??= getComputedStyle(probe).color;
    return read[token];
  };
}
