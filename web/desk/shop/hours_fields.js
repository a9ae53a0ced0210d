/** The week of the shop, or of one of its places, in a form. */

import { html } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Field, Icon, Menu, Switch, toast } from "../../design/components.js";
import { copied, DAYS, endsNextDay, hoursOf, isWholeDay, MAX_SPANS, partsOf, weekOf, wholeDay, withAnother, WORKDAYS } from "./hours.js";

const ZONES = ["WIB", "WITA", "WIT"];
const USUAL_WEEK = { ...Object.fromEntries(WORKDAYS.map((day) => [day, [["09:00", "17:00"]]])), saturday: [["09:00", "14:00"]] };

/** `{ isKnown, week, zone }` of hours and zone as the API has them. */
export function hoursForm({ opening_hours: hours, time_zone: zone }) {
  return { isKnown: Boolean(hours), week: weekOf(hours ?? USUAL_WEEK), zone };
}

/** What is sent of it; the zone only if it is another one than before. */
export function hoursSent({ isKnown, week, zone }, before) {
  return { opening_hours: isKnown ? hoursOf(week) : null, ...(isKnown && zone !== before && { time_zone: zone }) };
}

export function HoursFields({ given, onChange }) {
  const { isKnown, week, zone } = given;
  const set = (changes) => onChange({ ...given, ...changes });
  const copy = (day, others) => {
    set({ week: copied(week, day, others) });
    toast(t("own.hours.copied", { day: t(`day.${day}`) }));
  };
  return html`<${Switch} label=${t("own.hours.known")} checked=${isKnown} onChange=${(value) => set({ isKnown: value })} />
    ${isKnown ? html`<div class="week">${DAYS.map((day) => html`<${DayRow} key=${day} day=${day} week=${week} onChange=${(spans) => set({ week: { ...week, [day]: spans } })} onCopy=${(others) => copy(day, others)} />`)}</div>
      <${Field} label=${t("own.zone")} help=${t("own.zone.help")}>${(attributes) => html`<select class="select" value=${zone} onChange=${(event) => set({ zone: event.target.value })} ...${attributes}>${ZONES.map((name) => html`<option value=${name} selected=${name === zone}>${t(`own.zone.${name}`)}</option>`)}</select>`}<//>`
      : html`<p class="soft">${t("own.hours.unknown")}</p>`}`;
}

function DayRow({ day, week, onChange, onCopy }) {
  const spans = week[day];
  const isWhole = isWholeDay(spans);
  const name = t(`day.${day}`);
  const set = (at, changes) => onChange(spans.map((span, number) => (number === at ? { ...span, ...changes } : span)));
  const others = DAYS.filter((other) => other !== day);
  const items = [
    { icon: "copy", label: t("own.hours.copy.all"), onSelect: () => onCopy(others) },
    { icon: "copy", label: t("own.hours.copy.workdays"), onSelect: () => onCopy(WORKDAYS.filter((other) => other !== day)) },
    { icon: "sun", label: t("own.hours.whole"), onSelect: () => onChange(wholeDay()) },
    { icon: "moon", label: t("own.hours.closed.do"), onSelect: () => onChange([]) },
  ];
  return html`<fieldset class="week-day"><legend class="week-name">${name}</legend>
    <div class="week-track" aria-hidden="true">${partsOf(week, day).map(({ from, length }, at) => html`<span key=${at} style=${{ left: `${100 * from}%`, width: `${100 * length}%` }}></span>`)}</div>
    <div class="week-spans">
      ${!spans.length && html`<p class="faint">${t("own.hours.closed")}</p>`}
      ${isWhole && html`<p><${Icon} name="sun" /> ${t("own.hours.whole")}</p>`}
      ${!isWhole && spans.map((span, at) => html`<div class="week-span" key=${at}>
        <input class="input numbers" type="time" required aria-label=${t("own.hours.from", { day: name })} value=${span.from} onInput=${(event) => set(at, { from: event.target.value })} />
        <span aria-hidden="true">–</span>
        <input class="input numbers" type="time" required aria-label=${t("own.hours.to", { day: name })} value=${span.to === "24:00" ? "00:00" : span.to} onInput=${(event) => set(at, { to: event.target.value })} />
        <${Button} small kind="quiet" icon="x" label=${t("own.hours.remove", { day: name })} onClick=${() => onChange(spans.filter((_, number) => number !== at))} />
        ${endsNextDay(span) && html`<small class="faint">${t("own.hours.next.day")}</small>`}</div>`)}
    </div>
    <div class="row week-actions">${!isWhole && spans.length < MAX_SPANS && html`<${Button} small kind="quiet" icon="plus" label=${t("own.hours.add", { day: name })} onClick=${() => onChange(withAnother(spans))} />`}
      <${Menu} small icon="ellipsis" label=${t("own.hours.more", { day: name })} items=${items} end /></div>
  </fieldset>`;
}
