/** A bar for each day: a canvas of uPlot, and the same numbers as a table. */

import { theme } from "../../app/theme.js";
import { html, useEffect, useRef, useState } from "../../app/view.js";
import { language, t } from "../../app/words.js";
import { Button } from "../../design/components.js";

const PHONE_HEIGHT = 180;
const HEIGHT = 240;
let loading = null;

/** `days`: `[{ day: "2026-11-28", ... }]`; `value` reads a day's number, `format` and `formatTick` write one. */
export function DayChart({ title, days, value, format, formatTick = format }) {
  const box = useRef(null);
  const [asTable, setAsTable] = useState(false);
  const [pointed, setPointed] = useState(null);
  const values = days.map(value);
  const dayName = (day, style = { day: "numeric", month: "short" }) => new Date(`${day}T12:00:00`).toLocaleDateString(language.value, style);

  useEffect(() => {
    if (asTable) return undefined;
    let made = null;
    let isGone = false;
    const draw = async () => {
      loading ??= import("../../vendor/uplot.js");
      const { default: UPlot } = await loading;
      if (isGone || !box.current) return;
      made = makePlot(UPlot, box.current, { labels: days.map(({ day }) => dayName(day)), formatTick, onPoint: setPointed });
      made.setData([values.map((_, at) => at), values]);
    };
    draw();
    const resized = new ResizeObserver(([entry]) => made?.setSize({ width: Math.floor(entry.contentRect.width), height: heightOf() }));
    resized.observe(box.current);
    return () => {
      isGone = true;
      resized.disconnect();
      made?.destroy();
      setPointed(null);
    };
  }, [days, title, theme.value, language.value, asTable]);

  const most = values.indexOf(Math.max(...values));
  const summary = Math.max(...values) ? t("numbers.chart.most", { title, day: dayName(days[most].day, { weekday: "long", day: "numeric", month: "long" }), value: format(values[most]) }) : t("numbers.chart.none", { title });
  const point = pointed === null || !days[pointed] ? "" : `${dayName(days[pointed].day, { weekday: "short", day: "numeric", month: "short" })}: ${format(values[pointed])}`;
  return html`<figure class="day-chart"><figcaption class="row"><span class="grow soft"><small>${point || summary}</small></span>
      <${Button} small kind="quiet" icon=${asTable ? "chart-column" : "table"} aria-pressed=${asTable} label=${t(asTable ? "numbers.as.chart" : "numbers.as.table")} onClick=${() => setAsTable(!asTable)} /></figcaption>
    ${asTable ? html`<div class="scroll day-table" tabindex="0" role="group" aria-label=${title}><table class="table"><thead><tr><th scope="col">${t("numbers.day")}</th><th scope="col" class="number">${title}</th></tr></thead>
      <tbody>${days.map(({ day }, at) => html`<tr key=${day}><td>${dayName(day, { weekday: "short", day: "numeric", month: "short" })}</td><td class="number">${format(values[at])}</td></tr>`).reverse()}</tbody></table></div>`
      : html`<div class="canvas" ref=${box} role="img" aria-label=${summary}></div>`}
  </figure>`;
}

const heightOf = () => (matchMedia("(max-width: 40rem)").matches ? PHONE_HEIGHT : HEIGHT);

function makePlot(UPlot, box, { labels, formatTick, onPoint }) {
  const colour = colours(box);
  const font = `11px ${getComputedStyle(box).fontFamily}`;
  const axis = { stroke: colour("--ink-faint"), font, ticks: { show: false }, gap: 6 };
  return new UPlot({
    width: Math.max(100, Math.floor(box.clientWidth)),
    height: heightOf(),
    padding: [10, 8, 0, 0],
    legend: { show: false },
    select: { show: false },
    cursor: { x: false, y: false, drag: { x: false, y: false, setScale: false }, points: { show: false } },
    scales: { x: { time: false, range: () => [-0.6, labels.length - 0.4] }, y: { range: (_, low, high) => [0, Math.max(1, (high ?? 0) * 1.08)] } },
    axes: [
      { ...axis, grid: { show: false }, size: 26, space: 56, incrs: [1, 2, 7, 14, 28], values: (_, ticks) => ticks.map((at) => labels[at] ?? "") },
      { ...axis, grid: { stroke: colour("--line"), width: 1 }, size: 64, space: 30, incrs: [1, 2, 5, 10, 20, 50].flatMap((step) => [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map((power) => step * 10 ** power)).sort((one, other) => one - other), values: (_, ticks) => ticks.map((tick) => (tick === 0 ? "0" : formatTick(tick))) },
    ],
    series: [{}, { stroke: colour("--series-1"), fill: colour("--series-1"), width: 0, points: { show: false }, paths: UPlot.paths.bars({ size: [0.62, 44], radius: 0.18 }) }],
    hooks: { setCursor: [(self) => onPoint(self.cursor.idx ?? null)] },
  }, [[], []], box);
}

/** A canvas does not know the tokens: the browser says what they are in this theme. */
function colours(box) {
  const probe = document.createElement("i");
  box.append(probe);
  return (token) => {
    probe.style.color = `var(${token})`;
    return getComputedStyle(probe).color;
  };
}
