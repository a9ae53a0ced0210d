/** What a histogram says of the time between two looks. Percentiles are estimated within a bucket, as Prometheus does. */

/** `buckets`: `[[upper bound, observations up to it]]`. Null without observations. */
export function quantile(buckets, share) {
  const total = buckets.at(-1)?.[1] ?? 0;
  if (!(total > 0)) return null;
  const wanted = share * total;
  let below = 0;
  let lower = 0;
  for (const [bound, count] of buckets) {
    if (count >= wanted) return bound === Infinity ? lower : lower + ((bound - lower) * (wanted - below)) / Math.max(count - below, 1e-9);
    below = count;
    lower = bound;
  }
  return lower;
}

/** Where the observations are: `[[lower bound, upper bound, part of all]]`, without empty buckets. Null without observations. */
export function spreadOf(buckets) {
  const total = buckets.at(-1)?.[1] ?? 0;
  if (!(total > 0)) return null;
  return buckets
    .map(([upper, count], at) => [at ? buckets[at - 1][0] : 0, upper, (count - (at ? buckets[at - 1][1] : 0)) / total])
    .filter(([, , part]) => part > 0);
}

/** The observations between two looks; those of all time without `before`. */
export function bucketsBetween(before, now, name, labels = {}) {
  const counted = now.buckets(name, labels);
  if (!before) return counted;
  const earlier = new Map(before.buckets(name, labels));
  return counted.map(([bound, count]) => [bound, Math.max(0, count - (earlier.get(bound) ?? 0))]);
}

/** How fast a counter grew; 0 after a restart of the server, when it began anew. */
export function rateBetween(before, now, name, labels = {}) {
  const seconds = (now.at - before.at) / 1000;
  return seconds > 0 ? Math.max(0, now.value(name, labels) - before.value(name, labels)) / seconds : 0;
}
