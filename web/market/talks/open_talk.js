/** One talk: its messages with who wrote them and whether they were read, and the field to write on. */

import { addressOf } from "../../app/addresses.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../../app/view.js";
import { formatDay, formatTime, t } from "../../app/words.js";
import { Badge, Button, Icon, Note } from "../../design/components.js";
import { leaveTalk, markAsRead, openTalk, readEarlier, readTalk, showTalk, talkFault } from "./talk_calls.js";
import { aboutOf } from "./talk_list.js";
import { ReportDialog } from "./report_dialog.js";
import { TalkForm } from "./talk_form.js";

/** `nameOf` says with whom it is, `linkOf` where that stands which it is about. */
export function OpenTalk({ id, nameOf, linkOf }) {
  const [reported, setReported] = useState(null);
  useLayoutEffect(() => { showTalk(id); }, [id]);
  useEffect(() => leaveTalk, []);
  const talk = openTalk.value?.id === id ? openTalk.value : null;
  const isNew = Boolean(talk?.num_unread);
  useEffect(() => {
    if (!isNew) return undefined;
    const mark = () => { if (!document.hidden) markAsRead(openTalk.value).catch(() => {}); };
    mark();
    document.addEventListener("visibilitychange", mark);
    return () => document.removeEventListener("visibilitychange", mark);
  }, [isNew, talk?.num_messages]);
  const back = html`<a class="talk-back row" href="#/messages"><${Icon} name="chevron-left" />${t("talks")}</a>`;
  const fault = talkFault.value && html`<${Note} kind="bad" role="alert"><div class="row-wrap"><span class="grow">${talkFault.value.status === 404 ? t("talk.gone") : talkFault.value.message}</span><${Button} small icon="refresh-cw" onClick=${readTalk}>${t("talk.again")}<//></div><//>`;
  if (!talk) return html`<section class="talk card">${back}${fault || html`<p class="soft" role="status">${t("talk.loading")}</p>`}</section>`;
  return html`<section class="talk card" aria-label=${t("talk.with", { name: nameOf(talk) })}>
    ${back}
    <header role="presentation"><h2 class="grow">${nameOf(talk)}<br /><small><a href=${linkOf(talk)}>${aboutOf(talk)}</a></small></h2></header>
    ${fault}
    <${Messages} talk=${talk} name=${nameOf(talk)} onReport=${setReported} key=${id} />
    ${talk.closed_reason ? html`<${Note} kind="info" role="status">${t(`talk.closed.${talk.closed_reason}`)}<//>` : html`<${TalkForm} talk=${talk} key=${`form-${id}`} />`}
    ${reported && html`<${ReportDialog} talkId=${id} number=${reported} onClose=${() => setReported(null)} />`}
  </section>`;
}

function Messages({ talk, name, onReport }) {
  const ref = useRef(null);
  const [error, setError] = useState("");
  const last = talk.messages.at(-1)?.number;
  // On a phone the list goes, and the link in it that had the focus.
  useEffect(() => { if (!document.querySelector(".talks-list")?.offsetParent && document.activeElement === document.body) ref.current.focus({ preventScroll: true }); }, []);
  useLayoutEffect(() => { ref.current.scrollTop = ref.current.scrollHeight; }, [last]);
  const earlier = () => { setError(""); readEarlier().catch((fault) => setError(fault.message)); };
  return html`<div class="talk-messages" ref=${ref} role="log" aria-label=${t("talk.messages")} tabindex="0">
    ${error && html`<${Note} kind="bad" role="alert">${error}<//>`}
    ${talk.messages[0]?.number > 1 && html`<div><${Button} small kind="quiet" icon="chevron-down" onClick=${earlier}>${t("talk.earlier")}<//></div>`}
    <ol>${talk.messages.map((one) => html`<${Message} key=${one.number} one=${one} talk=${talk} name=${name} onReport=${onReport} />`)}</ol>
  </div>`;
}

function Message({ one, talk, name, onReport }) {
  const isMine = one.side === talk.side;
  const isRead = isMine && one.number <= talk.read_by_other;
  const mayReport = !isMine && !one.is_hidden && !one.is_reported;
  return html`<li class=${isMine ? "talk-message is-mine" : "talk-message"}>
    <span class="visually-hidden">${isMine ? t("talk.you") : name}:</span>
    <div class=${one.is_hidden ? "talk-bubble is-hidden" : "talk-bubble"}>${one.is_hidden ? html`<${Icon} name="eye-off" /> ${t("talk.hidden")}` : one.picture ? html`<a href=${addressOf(one.picture.urls.large)} target="_blank" rel="noopener"><img src=${addressOf(one.picture.urls.medium ?? one.picture.urls.large)} width=${one.picture.width} height=${one.picture.height} alt=${t("talk.picture.of", { name: isMine ? t("talk.you") : name })} decoding="async" /></a>` : one.body}</div>
    <small class="talk-about faint"><time class="numbers" datetime=${one.created_at}>${momentOf(one.created_at)}</time>
      ${one.is_drafted && html`<span>· ${t("talk.drafted")}</span>`}
      ${isMine && html`<span>· ${isRead && html`<${Icon} name="check" />`}${t(isRead ? "talk.read" : "talk.sent")}</span>`}
      ${one.is_reported && html`<${Badge} kind="warn" icon="flag">${t("talk.reported")}<//>`}
      ${mayReport && html`<${Button} small kind="quiet" icon="flag" label=${t("talk.report")} onClick=${() => onReport(one.number)} />`}</small>
  </li>`;
}

/** Of today the time alone. */
function momentOf(text) {
  const date = new Date(text);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? formatTime(date) : `${formatDay(date)}, ${formatTime(date)}`;
}
