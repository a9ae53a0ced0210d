/** The week of a shop as the form holds it: for each day a list of `{ from, to }`, or the whole day. */

export const DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
export const WORKDAYS = DAYS.slice(0, 5);
export const MAX_SPANS = 4;
const DAY_MINUTES = 24 * 60;
const USUAL = { from: "09:00", to: "17:00" };

/** `hours`: as the API has them, or null. */
export function weekOf(hours) {
  return Object.fromEntries(DAYS.map((day) => [day, (hours?.[day] ?? []).map(([from, to]) => ({ from, to }))]));
}

/** Without the days on which the shop is closed. */
export function hoursOf(week) {
  return Object.fromEntries(DAYS.filter((day) => week[day].length).map((day) => [day, week[day].map(({ from, to }) => [from, to])]));
}

export const isWholeDay = (spans) => spans.length === 1 && spans[0].from === "00:00" && spans[0].to === "24:00";
export const wholeDay = () => [{ from: "00:00", to: "24:00" }];

/** Another span of the day: the usual one first, then one that begins an hour after the last. */
export function withAnother(spans) {
  const last = spans.at(-1);
  if (!last) return [{ ...USUAL }];
  const from = Math.min(minutes(last.to) + 60, DAY_MINUTES - 120);
  return [...spans, { from: clock(from), to: clock(Math.min(from + 180, DAY_MINUTES - 60)) }];
}

/** Gives the spans of `day` to other days. */
export function copied(week, day, others) {
  const copy = Object.fromEntries(others.map((other) => [other, week[day].map((span) => ({ ...span }))]));
  return { ...week, ...copy };
}

export const endsNextDay = ({ from, to }) => Boolean(from && to) && minutes(to) <= minutes(from);

/** What is open as parts of a day, from 0 to 1; the evening before runs over midnight. */
export function partsOf(week, day) {
  const before = DAYS[(DAYS.indexOf(day) + DAYS.length - 1) % DAYS.length];
  const own = week[day].filter(isFilled).map((span) => [minutes(span.from), endsNextDay(span) ? DAY_MINUTES : minutes(span.to)]);
  const late = week[before].filter(isFilled).filter(endsNextDay).map((span) => [0, minutes(span.to)]);
  return [...late, ...own].filter(([from, to]) => to > from).map(([from, to]) => ({ from: from / DAY_MINUTES, length: (to - from) / DAY_MINUTES }));
}

const isFilled = ({ from, to }) => Boolean(from && to);
const minutes = (text) => Number(text.slice(0, 2)) * 60 + Number(text.slice(3));
const clock = (number) => `${String(Math.floor(number / 60)).padStart(2, "0")}:${String(number % 60).padStart(2, "0")}`;
