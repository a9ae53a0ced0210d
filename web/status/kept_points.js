/** The points of the charts stay while this tab is open, so that a look at the chat does not empty them. */

const NAME = "tis.status.points";
const ENDLESS = "Infinity"; // the last bound of a histogram, which JSON does not have

export function readPoints() {
  try {
    const points = JSON.parse(sessionStorage.getItem(NAME) ?? "[]", (_, value) => (value === ENDLESS ? Infinity : value));
    return Array.isArray(points) ? points.filter((one) => Number.isFinite(one?.at)) : [];
  } catch {
    return []; // forbidden, or of another version
  }
}

export function keepPoints(points) {
  try {
    sessionStorage.setItem(NAME, JSON.stringify(points, (_, value) => (value === Infinity ? ENDLESS : value)));
  } catch {
    // Storage may be forbidden or full: charts begin anew at the next visit.
  }
}
