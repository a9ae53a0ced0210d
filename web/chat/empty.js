/** The first page of a conversation: what this is, and four examples that teach what it can do. */

import { assetOf } from "../app/addresses.js";
import { Icon } from "../design/components.js";
import { html } from "../app/view.js";
import { t } from "../app/words.js";
import { attachmentOf } from "./composer/attachments.js";
import { isAble, modelOf, takes } from "./models/models.js";

const PICTURE = "chat/samples/picture.webp";
const PERSON = {
  type: "object",
  properties: { name: { type: "string" }, city: { type: "string" } },
  required: ["name", "city"],
  additionalProperties: false,
};

/** `onSend` gets what the composer's `onSend` gets; an example of JSON has `settings` for the conversation, too. */
const EXAMPLES = [
  { id: "greeting", icon: "message-square" },
  { id: "sum", icon: "brain" },
  { id: "picture", picture: PICTURE, needs: (model) => takes(model, "image"), otherwise: { id: "story", icon: "book-open" } },
  { id: "json", icon: "braces", settings: { schema: PERSON }, needs: (model) => isAble(model, "structured_outputs"), otherwise: { id: "count", icon: "list" } },
];

/** What the model cannot do gives way to something that it can. */
function examplesFor(model) {
  return EXAMPLES.map((example) => (!model || !example.needs || example.needs(model) ? example : example.otherwise));
}

export function EmptyState({ conversation, onSend }) {
  const examples = examplesFor(modelOf(conversation?.settings));
  const send = async (example) => {
    const attachments = example.picture ? [await sample(example.picture)] : [];
    onSend({ text: t(`example.${example.id}`), attachments, ...(example.settings ? { settings: example.settings } : {}) });
  };
  return html`<section class="empty" aria-labelledby="empty-title">
    <div class="empty-words"><h1 id="empty-title">${t("empty.title")}</h1><p class="soft">${t("empty.words")}</p></div>
    <ul class="examples" aria-label=${t("empty.examples")}>${examples.map((example) => html`<li key=${example.id}><button type="button" class="example" onClick=${() => send(example)}>
      ${example.picture ? html`<img class="example-picture" src=${assetOf(example.picture)} alt="" />` : html`<span class="example-picture"><${Icon} name=${example.icon} /></span>`}
      <span class="example-question">${t(`example.${example.id}`)}</span>
      <span class="example-teaches">${t(`example.${example.id}.teaches`)}</span>
    </button></li>`)}</ul>
  </section>`;
}

async function sample(path) {
  const blob = await (await fetch(assetOf(path))).blob();
  return attachmentOf(new File([blob], t("example.picture.name"), { type: "image/webp" }));
}
