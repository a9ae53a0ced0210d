/** Colours of code. The highlighter and each language are loaded when the first code needs them. */

import DOMPurify from "../../vendor/dompurify.js";

const MAX_CHARACTERS = 60_000;
const LANGUAGES = new Set((
  "bash c cpp csharp css diff dockerfile go graphql http ini java javascript json kotlin lua makefile markdown nginx php " +
  "powershell python r ruby rust scss sql swift typescript xml yaml"
).split(" "));
const OTHER_NAMES = {
  js: "javascript", jsx: "javascript", mjs: "javascript", node: "javascript", ts: "typescript", tsx: "typescript", py: "python", python3: "python",
  sh: "bash", shell: "bash", zsh: "bash", console: "bash", html: "xml", svg: "xml", vue: "xml", yml: "yaml", "c++": "cpp", cc: "cpp", h: "c", hpp: "cpp",
  cs: "csharp", "c#": "csharp", rb: "ruby", rs: "rust", md: "markdown", kt: "kotlin", golang: "go", toml: "ini", conf: "ini", env: "ini", jsonc: "json",
  json5: "json", docker: "dockerfile", make: "makefile", ps1: "powershell", patch: "diff", gql: "graphql", postgresql: "sql", mysql: "sql", sqlite: "sql",
};

const loaded = new Map();
const idle = window.requestIdleCallback ?? ((work) => setTimeout(work, 1));

export function highlight(body, code, name) {
  const wanted = name.toLowerCase();
  const language = OTHER_NAMES[wanted] ?? wanted;
  if (!LANGUAGES.has(language) || code.length > MAX_CHARACTERS) return;
  idle(async () => {
    const core = await languageLoaded(language).catch(() => null);
    if (core && body.isConnected && body.textContent === code) body.replaceChildren(spansOf(core.highlight(code, { language }).value));
  });
}

function languageLoaded(language) {
  if (!loaded.has(language)) loaded.set(language, load(language));
  return loaded.get(language);
}

async function load(language) {
  const [core, grammar] = await Promise.all([import("../../vendor/highlight/core.js"), import(`../../vendor/highlight/${language}.js`)]);
  core.default.registerLanguage(language, grammar.default);
  return core.default;
}

/** Spans with classes, as a highlighter makes them. */
function spansOf(html) {
  return DOMPurify.sanitize(html, { ALLOWED_TAGS: ["span"], ALLOWED_ATTR: ["class"], RETURN_DOM_FRAGMENT: true });
}
