import { Overlays, TopBar } from "../app/shell.js";
import { html, render } from "../app/view.js";

function Page() {
  return html`<div class="page"><${TopBar} current="" /><main></main><${Overlays} /></div>`;
}

render(html`<${Page} />`, document.getElementById("app"));
