/** A histogram over time, behind the lines of its percentiles: the more observations, the darker. */

const LEAST = 0.07;
const MOST = 0.6;

/** Draws `spreads`, one for each point of the chart: `[[lower, upper, part]]`, or null. */
export function drawSpreads(plot, spreads, colour) {
  const { ctx, bbox } = plot;
  const [times] = plot.data;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  ctx.fillStyle = colour;
  for (let at = 1; at < times.length; at++) {
    if (!spreads[at] || times[at] < plot.scales.x.min) continue;
    const left = Math.round(plot.valToPos(times[at - 1], "x", true));
    const right = Math.round(plot.valToPos(times[at], "x", true));
    for (const [lower, upper, part] of spreads[at]) {
      const top = plot.valToPos(Math.min(upper, plot.scales.y.max), "y", true);
      const bottom = plot.valToPos(Math.min(lower, plot.scales.y.max), "y", true);
      ctx.globalAlpha = LEAST + (MOST - LEAST) * part;
      ctx.fillRect(left, top, right - left, bottom - top);
    }
  }
  ctx.restore();
}
