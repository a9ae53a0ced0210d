/** /docs: Swagger UI under the bar that all pages have. Its bundle is a script of before modules: it leaves a name. */

import { theme } from "../app/theme.js";
import { effect, html, render } from "../app/view.js";
import { t } from "../app/words.js";
import { Overlays, TopBar } from "../design/shell.js";

const systemIsDark = matchMedia("(prefers-color-scheme: dark)");

function showTheme() {
  const isDark = theme.value === "system" ? systemIsDark.matches : theme.value === "dark";
  document.documentElement.classList.toggle("dark-mode", isDark);
}

function Frame() {
  return html`<a class="skip-link" href="#swagger-ui">${t("skip.to.content")}</a><${TopBar} current="docs" /><${Overlays} />`;
}

effect(showTheme);
effect(() => { document.title = t("page.docs"); });
systemIsDark.addEventListener("change", showTheme);
render(html`<${Frame} />`, document.getElementById("app"));
globalThis.SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#swagger-ui",
  deepLinking: true,
  showExtensions: true,
  showCommonExtensions: true,
  validatorUrl: null, // it is a public service that would get the address of this server
});
