/** /pages/styles: every part of the design, in both themes. For developers; served with DEVELOPMENT=1. */

import { Overlays, TopBar } from "../design/shell.js";
import { html, render, signal } from "../app/view.js";
import { Badge, Button, CopyButton, Dialog, Field, Icon, Menu, Meter, Note, Switch, Tabs, toast } from "../design/components.js";

const COLOURS = "ground surface surface-raised surface-sunken line line-strong ink ink-soft ink-faint accent accent-strong accent-soft good good-soft warn warn-soft bad bad-soft info info-soft series-1 series-2 series-3 series-4 series-5".split(" ");
const SIZES = ["3xl", "2xl", "xl", "lg", "md", "sm", "xs"];
const open = signal("");
const on = signal(true);
const tab = signal("one");

function Part({ name, children }) {
  return html`<section class="card stack"><header><h2>${name}</h2></header>${children}</section>`;
}

function Styles() {
  return html`<div class="page"><${TopBar} current="styles" /><main class="styles">
    <h1>Styles</h1>
    <p class="soft">Paper and ink, one warm accent. Type is Geist; numbers are tabular; nothing moves for those who ask for less motion.</p>
    <${Part} name="Colours"><div class="swatches">${COLOURS.map((name) => html`<div class="swatch"><div style=${{ background: `var(--${name})` }}></div><code>--${name}</code></div>`)}</div><//>
    <${Part} name="Type">${SIZES.map((size) => html`<div style=${{ fontSize: `var(--text-${size})` }}>--text-${size}: Satu jawaban yang bertahan</div>`)}<//>
    <${Part} name="Buttons"><div class="row-wrap">
      <${Button} kind="primary" icon="send">Primary<//><${Button} icon="plus">Plain<//><${Button} kind="quiet">Quiet<//><${Button} kind="danger" icon="trash-2">Danger<//>
      <${Button} disabled>Disabled<//><${Button} icon="loader-circle" spin>Busy<//><${Button} icon="settings" label="Settings" /><${Button} small>Small<//><${CopyButton} text="copied" />
      <${Menu} icon="ellipsis" label="Menu" items=${[{ icon: "pencil", label: "Rename", onSelect: () => toast("Renamed") }, { icon: "trash-2", label: "Delete", danger: true, onSelect: () => {} }]} />
    </div><//>
    <${Part} name="Fields"><${Field} label="Name" help="As your clients will call it.">${(a) => html`<input class="input" placeholder="demo" ...${a} />`}<//>
      <${Field} label="Tokens" error="A whole number above 0.">${(a) => html`<input class="input" value="-3" ...${a} />`}<//>
      <${Field} label="Temperature">${(a) => html`<input class="slider" type="range" ...${a} />`}<//>
      <${Field} label="Prompt">${(a) => html`<textarea class="textarea" rows="3" ...${a}></textarea>`}<//>
      <${Switch} label="Remember" checked=${on.value} onChange=${(value) => { on.value = value; }} /><//>
    <${Part} name="States"><div class="row-wrap"><${Badge}>idle<//><${Badge} kind="good" icon="check">ready<//><${Badge} kind="info" icon="loader-circle" spin>loading<//><${Badge} kind="warn">waiting<//><${Badge} kind="bad">failed<//><${Badge} kind="accent">new<//></div>
      <${Note}>A note.<//><${Note} kind="good">It worked.<//><${Note} kind="warn">Look here.<//><${Note} kind="bad">It failed, and this is why.<//><${Meter} value=${0.62} label="Progress" /><//>
    <${Part} name="Nothing yet"><div class="nothing"><${Icon} name="inbox" /><p class="soft">No request has come.</p><${Button} icon="plus">Make one<//></div><//>
    <${Part} name="Dialogs and tabs"><div class="row-wrap"><${Button} onClick=${() => { open.value = "dialog"; }}>Dialog<//><${Button} onClick=${() => { open.value = "drawer"; }}>Drawer<//><${Button} onClick=${() => toast("Saved")}>Toast<//></div>
      <${Tabs} label="Tabs" selected=${tab.value} onSelect=${(id) => { tab.value = id; }} tabs=${[{ id: "one", label: "One" }, { id: "two", label: "Two" }]} /><//>
    <${Part} name="Table"><table class="table"><thead><tr><th>Model</th><th class="number">Tokens a second</th></tr></thead><tbody><tr><td>demo</td><td class="number">812.4</td></tr></tbody></table><//>
    <${Part} name="Icons"><${Icons} /><//>
    ${open.value && html`<${Dialog} title="A dialog" edge=${open.value === "drawer" ? "right" : undefined} onClose=${() => { open.value = ""; }} footer=${html`<${Button} kind="primary" onClick=${() => { open.value = ""; }}>Done<//>`}>Focus stays inside.<//>`}
  </main><${Overlays} /></div>`;
}

const icons = signal([]);

function Icons() {
  return html`<div class="row-wrap">${icons.value.map((name) => html`<span title=${name}><${Icon} name=${name} label=${name} /></span>`)}</div>`;
}

const sprite = await (await fetch(new URL("../vendor/icons.svg", import.meta.url))).text();
icons.value = [...sprite.matchAll(/symbol id="([^"]+)"/g)].map((match) => match[1]);
render(html`<${Styles} />`, document.getElementById("app"));
