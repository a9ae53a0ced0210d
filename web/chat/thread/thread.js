/** The messages on the path that is shown. */

import { html } from "../../app/view.js";
import { messageOf, messageSignal, path } from "../conversations/conversations.js";
import { FollowingScroll } from "./following_scroll.js";
import { AssistantMessage } from "./assistant_message.js";
import { UserMessage } from "./user_message.js";

export function Thread({ conversation }) {
  const ids = path.value;
  const lastQuestion = ids.findLast((id) => messageOf(id)?.role === "user");
  return html`<${FollowingScroll} follow=${ids.at(-1)}><div class="thread">${ids.map((id) => html`<${Message} key=${id} id=${id} conversation=${conversation}
    isLast=${id === ids.at(-1)} isLastQuestion=${id === lastQuestion} />`)}</div><//>`;
}

function Message({ id, ...rest }) {
  const message = messageSignal(id)?.value;
  if (!message) return null;
  return message.role === "user" ? html`<${UserMessage} message=${message} ...${rest} />` : html`<${AssistantMessage} message=${message} ...${rest} />`;
}
