/** When a shop is open, in its own time. */

import { Badge } from "../../design/components.js";
import { html } from "../../app/view.js";
import { t } from "../../app/words.js";

const DAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
const ZONES = { WIB: "Asia/Jakarta", WITA: "Asia/Makassar", WIT: "Asia/Jayapura" };

export function OpeningHours({ shop }) {
  if (!shop.opening_hours) return html`<p class="faint">${t("shop.hours.unknown")}</p>`;
  const today = DAYS[(weekdayIn(ZONES[shop.time_zone] ?? ZONES.WIB) + 6) % 7];
  const isOpenToday = shop.opening_hours[today]?.length > 0;
  return html`<details class="hours"><summary>${shop.open_now === null ? t("shop.hours") : html`<${Badge} kind=${shop.open_now ? "good" : ""}>${t(shop.open_now ? "shop.open" : "shop.closed")}<//>`} <span class="soft">${isOpenToday ? `${t("shop.hours.today", { hours: spansOf(shop.opening_hours[today]) })} ${shop.time_zone ?? ""}` : t("shop.hours.not_today")}</span></summary>
    <table class="table"><tbody>${DAYS.map((day) => html`<tr key=${day} aria-current=${day === today ? "date" : undefined}><th scope="row">${t(`day.${day}`)}</th><td class="numbers">${spansOf(shop.opening_hours[day])}</td></tr>`)}</tbody></table></details>`;
}

const spansOf = (spans) => (spans?.length ? spans.map(([from, to]) => `${from}–${to}`).join(", ") : t("shop.closed"));

function weekdayIn(timeZone) {
  const name = new Intl.DateTimeFormat("en", { weekday: "short", timeZone }).format(new Date());
  return ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"].indexOf(name);
}
