/** An answer of somebody else, read only, as it comes. */

import { Badge, Note } from "../../design/components.js";
import { html, useEffect, useState } from "../../app/view.js";
import { t } from "../../app/words.js";
import { AnswerRun, isRunning, watchedAnswer } from "../answers/run_answer.js";
import { AnswerBody } from "./answer_body.js";
import { FollowingScroll } from "./following_scroll.js";

export function Watch({ sessionId, token, question, note }) {
  const answer = useWatched(sessionId, token);
  return html`<${FollowingScroll}><div class="thread">
    <div class="watch-note"><${Note}>${note ?? t("chat.watch.note")}<//></div>
    ${question && html`<article class="message user"><h2 class="visually-hidden">${t("chat.you")}</h2><div class="bubble">${question}</div></article>`}
    <article class="message assistant"><h2 class="visually-hidden">${t("chat.answer")}</h2>
      ${isRunning(answer) && html`<${Badge} kind="accent" icon="eye">${t("chat.watch.live")}<//>`}
      <${AnswerBody} answer=${answer} isOwn=${false} />
    </article>
  </div><//>`;
}

function useWatched(sessionId, token) {
  const [shown, show] = useState(() => watchedAnswer(sessionId));
  useEffect(() => {
    const answer = watchedAnswer(sessionId);
    let frame = 0;
    const draw = () => { frame = 0; show({ ...answer }); };
    const onChange = () => { frame ||= requestAnimationFrame(draw); };
    const run = new AnswerRun(answer, { onChange, onEnd: () => show({ ...answer }), token, isLive: false });
    run.run();
    return () => { run.leave(); cancelAnimationFrame(frame); };
  }, [sessionId, token]);
  return shown;
}
