/** Says that the model is being loaded, while an answer waits for it: at its beginning, or after the server has started again. */

import { Icon } from "../../design/components.js";
import { html, useEffect } from "../../app/view.js";
import { t } from "../../app/words.js";
import { loadParts, modelOf, refreshModels } from "../models/models.js";

const ASK_MILLISECONDS = 2000;

export function LoadingNote({ answer }) {
  useEffect(() => {
    const timer = setInterval(refreshModels, ASK_MILLISECONDS);
    return () => {
      clearInterval(timer);
      refreshModels(); // the model that answers is ready now: its button shows it
    };
  }, []);
  const model = modelOf({ model: answer.model ?? answer.request?.model });
  if (!model || model.status === "loaded") return null;
  const part = loadParts.value[model.id] ?? null;
  const text = part === null ? t("chat.loading", { model: model.id }) : t("chat.loading.part", { model: model.id, percent: Math.round(part * 100) });
  return html`<p class="answer-note soft" role="status"><${Icon} name="loader-circle" spin /> ${text}</p>`;
}
