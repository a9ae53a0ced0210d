/** The text format of Prometheus, as GET /metrics writes it: `parseMetrics(text)` gives a `MetricsLook`. */

const LINE = /^([A-Za-z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)(?:\s+-?\d+)?\s*$/;
const LABEL = /([A-Za-z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"/g;
const ESCAPES = { n: "\n", "\\": "\\", '"': '"' };

/** All samples of one moment. `at` is in milliseconds. */
export class MetricsLook {
  constructor(at, series) {
    this.at = at;
    this.series = series;
  }

  has(name) {
    return this.series.has(name);
  }

  /** The sum of all series that have these labels. */
  value(name, labels = {}) {
    return this.matching(name, labels).reduce((sum, one) => sum + one.value, 0);
  }

  /** Of the largest to the smallest: `[[value of the label, sum]]`. */
  by(name, label, labels = {}) {
    const sums = new Map();
    for (const one of this.matching(name, labels)) {
      if (one.labels[label] !== undefined) sums.set(one.labels[label], (sums.get(one.labels[label]) ?? 0) + one.value);
    }
    return [...sums].sort((a, b) => b[1] - a[1]);
  }

  /** The one state of `name{state="..."}` that is 1. */
  stateOf(name, labels = {}) {
    return this.matching(name, labels).find((one) => one.value === 1)?.labels.state ?? null;
  }

  /** Buckets of a histogram, as `[[upper bound, observations up to it]]`, of all series together. */
  buckets(name, labels = {}) {
    return this.by(`${name}_bucket`, "le", labels)
      .map(([bound, count]) => [bound === "+Inf" ? Infinity : Number(bound), count])
      .sort((a, b) => a[0] - b[0]);
  }

  matching(name, labels) {
    const wanted = Object.entries(labels);
    return (this.series.get(name) ?? []).filter((one) => wanted.every(([label, value]) => one.labels[label] === value));
  }
}

export function parseMetrics(text, at = Date.now()) {
  const series = new Map();
  for (const line of text.split("\n")) {
    if (!line || line.startsWith("#")) continue;
    const found = LINE.exec(line);
    if (!found) continue;
    const sample = { labels: labelsOf(found[2] ?? ""), value: numberOf(found[3]) };
    const samples = series.get(found[1]);
    if (samples) samples.push(sample);
    else series.set(found[1], [sample]);
  }
  return new MetricsLook(at, series);
}

function labelsOf(text) {
  const labels = {};
  for (const [, name, value] of text.matchAll(LABEL)) labels[name] = value.replace(/\\(.)/g, (all, letter) => ESCAPES[letter] ?? all);
  return labels;
}

function numberOf(text) {
  const value = text.replace(/^([+-]?)Inf$/, "$1Infinity");
  return Number(value);
}
