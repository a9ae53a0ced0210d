/** What the shop did in the last weeks. Nobody counts who looked at what. */

import { readChoice, writeChoice } from "../../app/choices.js";
import { html, useEffect, useState } from "../../app/view.js";
import { counted, formatDay, formatNumber, formatRupiah, formatShort, t } from "../../app/words.js";
import { Badge, Button, Icon, Note, Tabs } from "../../design/components.js";
import { marketJson } from "../../market/market_calls.js";
import { messageOf } from "../own_shop/messages_of.js";
import { DayChart } from "./day_chart.js";

const WEEKS = [1, 2, 4, 12];
const CHOICE = "desk.weeks";
const SERIES = {
  rupiah: { value: (day) => day.sold_rupiah, format: formatRupiah, formatTick: (value) => `Rp ${formatShort(value)}` },
  units: { value: (day) => day.sold_units, format: (value) => formatNumber(value) },
  holds: { value: (day) => day.holds, format: (value) => formatNumber(value) },
};

export function NumbersPart({ shop }) {
  const [weeks, setWeeks] = useState(() => WEEKS.find((number) => String(number) === readChoice(CHOICE)) ?? 1);
  const [numbers, setNumbers] = useState(null);
  const [fault, setFault] = useState(null);
  const read = async (isCurrent = () => true) => {
    try {
      const found = await marketJson(`api/suppliers/${shop.id}/numbers?weeks=${weeks}`);
      if (isCurrent()) [setNumbers(found), setFault(null)];
    } catch (error) {
      if (isCurrent()) setFault(error);
    }
  };
  useEffect(() => {
    let isOld = false;
    read(() => !isOld);
    return () => { isOld = true; };
  }, [weeks]);
  const choose = (event) => {
    setWeeks(Number(event.target.value));
    writeChoice(CHOICE, event.target.value);
  };
  return html`<div class="row-wrap"><h1 class="grow">${t("desk.numbers")}</h1>
      <select class="select weeks" aria-label=${t("numbers.weeks")} value=${String(weeks)} onChange=${choose}>${WEEKS.map((number) => html`<option value=${String(number)} selected=${number === weeks}>${counted("numbers.last", number)}</option>`)}</select></div>
    ${fault && html`<${Note} kind="bad" role="alert"><div class="row-wrap"><span class="grow">${messageOf(fault)}</span><${Button} small icon="refresh-cw" onClick=${() => read()}>${t("desk.again")}<//></div><//>`}
    ${!numbers && !fault && html`<p class="soft" role="status">${t("desk.loading")}</p>`}
    ${numbers && html`<${Numbers} numbers=${numbers} />`}`;
}

function Numbers({ numbers }) {
  const [series, setSeries] = useState("rupiah");
  const { totals, previous, reviews, days } = numbers;
  const tabs = Object.keys(SERIES).map((id) => ({ id, label: t(`numbers.series.${id}`) }));
  const decided = totals.accepted + totals.refused;
  return html`<p class="soft">${t("numbers.period", { from: formatDay(new Date(`${numbers.first_day}T12:00:00`)), to: formatDay(new Date(`${numbers.last_day}T12:00:00`)), zone: numbers.time_zone })}</p>
    <div class="number-cards">
      <${NumberCard} name="rupiah" value=${formatRupiah(totals.sold_rupiah)} now=${totals.sold_rupiah} before=${previous.sold_rupiah} />
      <${NumberCard} name="units" value=${formatNumber(totals.sold_units)} now=${totals.sold_units} before=${previous.sold_units} />
      <${NumberCard} name="holds" value=${formatNumber(totals.holds)} now=${totals.holds} before=${previous.holds} />
      <${NumberCard} name="accepted" value=${decided ? `${formatNumber((100 * totals.accepted) / decided)} %` : "–"} about=${t("numbers.accepted.about", { accepted: formatNumber(totals.accepted), refused: formatNumber(totals.refused), expired: formatNumber(totals.expired) })} />
    </div>
    <section class="card stack"><h2>${t("numbers.by.day")}</h2><${Tabs} label=${t("numbers.by.day")} tabs=${tabs} selected=${series} onSelect=${setSeries} />
      <div role="tabpanel" id="panel-${series}" aria-label=${t(`numbers.series.${series}`)}><${DayChart} key=${series} title=${t(`numbers.series.${series}`)} days=${days} ...${SERIES[series]} /></div></section>
    <div class="number-lists"><${BestGoods} goods=${numbers.best_goods} /><${NearlyOut} goods=${numbers.nearly_out} /><${Reviews} reviews=${reviews} /></div>
    <p class="faint"><small>${t("numbers.views")}</small></p>`;
}

/** Compared with as many weeks before. */
function NumberCard({ name, value, now, before, about }) {
  const change = before ? Math.round((100 * (now - before)) / before) : null;
  const kind = change === null || change === 0 ? "" : change > 0 ? "good" : "warn";
  return html`<article class="card number-card"><h2 class="soft">${t(`numbers.${name}`)}</h2><p class="number-value numbers">${value}</p>
    ${about ? html`<p class="faint"><small>${about}</small></p>` : html`<p class="faint"><small>${change === null ? t("numbers.before.none") : html`<${Badge} kind=${kind} icon=${change < 0 ? "arrow-down" : "arrow-up"}>${change > 0 ? "+" : ""}${formatNumber(change)} %<//> ${t("numbers.before")}`}</small></p>`}</article>`;
}

function BestGoods({ goods }) {
  const most = Math.max(1, ...goods.map((one) => one.units));
  return html`<section class="card"><header role="presentation"><${Icon} name="trending-up" /><h2>${t("numbers.best")}</h2></header>
    ${!goods.length && html`<p class="soft">${t("numbers.best.none")}</p>`}
    <ol class="number-list">${goods.map((one) => html`<li key=${one.product_id}><div class="row"><span class="grow">${one.name}</span><strong class="numbers">${counted("holds.units", one.units)}</strong></div>
      <div class="share" aria-hidden="true"><span style=${{ transform: `scaleX(${one.units / most})` }}></span></div><p class="faint numbers"><small>${formatRupiah(one.rupiah)}</small></p></li>`)}</ol></section>`;
}

function NearlyOut({ goods }) {
  return html`<section class="card"><header role="presentation"><${Icon} name="triangle-alert" /><h2>${t("numbers.low")}</h2></header>
    ${!goods.length && html`<p class="soft">${t("numbers.low.none")}</p>`}
    <ul class="number-list">${goods.map((one) => html`<li class="row" key=${one.product_id}><span class="grow">${one.name}<br /><span class="faint"><small>${counted("numbers.low.sold", one.sold_units)}</small></span></span><${Badge} kind=${one.available_quantity > 0 ? "warn" : "bad"}>${counted("stock.left", one.available_quantity)}<//></li>`)}</ul>
    ${goods.length > 0 && html`<a class="button small" href="#/goods"><${Icon} name="package" />${t("desk.goods")}</a>`}</section>`;
}

function Reviews({ reviews }) {
  return html`<section class="card"><header role="presentation"><${Icon} name="star" /><h2>${t("desk.reviews")}</h2></header>
    <p class="row-wrap"><span class="number-value numbers">${reviews.mean_rating === null ? "–" : formatNumber(reviews.mean_rating, 1)}</span><span class="soft">${counted("numbers.reviews", reviews.number)}</span></p>
    ${reviews.unanswered > 0 ? html`<p class="row-wrap"><${Badge} kind="warn">${counted("numbers.unanswered", reviews.unanswered)}<//><a href="#/reviews">${t("numbers.answer.them")}</a></p>` : html`<p class="faint"><small>${t("reviews.none.unanswered")}</small></p>`}</section>`;
}
