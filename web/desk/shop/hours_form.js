/** When the shop is open: a row for each day of the week, in the shop's own time. */

import { html, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { Button, Field, Icon, Menu, Note, Switch, toast } from "../../design/components.js";
import { messageOf } from "../own_shop/messages_of.js";
import { copied, DAYS, endsNextDay, hoursOf, isWholeDay, MAX_SPANS, partsOf, weekOf, wholeDay, withAnother, WORKDAYS } from "./hours.js";
import { change, profile } from "./own_profile.js";

const ZONES = ["WIB", "WITA", "WIT"];
const USUAL_WEEK = { ...Object.fromEntries(WORKDAYS.map((day) => [day, [["09:00", "17:00"]]])), saturday: [["09:00", "14:00"]] };

export function HoursForm() {
  const shop = profile.value;
  const [isKnown, setKnown] = useState(Boolean(shop.opening_hours));
  const [week, setWeek] = useState(() => weekOf(shop.opening_hours ?? USUAL_WEEK));
  const [zone, setZone] = useState(shop.time_zone);
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  const setDay = (day, spans) => setWeek({ ...week, [day]: spans });
  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError("");
    try {
      await change({ opening_hours: isKnown ? hoursOf(week) : null, ...(zone !== profile.value.time_zone && { time_zone: zone }) });
      toast(t("own.saved"));
    } catch (fault) {
      setError(messageOf(fault));
    }
    setBusy(false);
  };
  const copy = (day, others) => {
    setWeek(copied(week, day, others));
    toast(t("own.hours.copied", { day: t(`day.${day}`) }));
  };
  return html`<form class="card stack own-form" onSubmit=${submit}>
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    <${Switch} label=${t("own.hours.known")} checked=${isKnown} onChange=${setKnown} />
    ${isKnown ? html`<div class="week">${DAYS.map((day) => html`<${DayRow} key=${day} day=${day} week=${week} onChange=${(spans) => setDay(day, spans)} onCopy=${(others) => copy(day, others)} />`)}</div>
      <${Field} label=${t("own.zone")} help=${t("own.zone.help")}>${(attributes) => html`<select class="select" value=${zone} onChange=${(event) => setZone(event.target.value)} ...${attributes}>${ZONES.map((name) => html`<option value=${name} selected=${name === zone}>${t(`own.zone.${name}`)}</option>`)}</select>`}<//>`
      : html`<p class="soft">${t("own.hours.unknown")}</p>`}
    <div class="row"><div class="grow"></div><${Button} kind="primary" type="submit" disabled=${isBusy}>${t("save")}<//></div>
  </form>`;
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
