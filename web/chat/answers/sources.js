/** What an answer cites: pages that a tool has returned and the text names, as the server says in its annotations. */

const MAX_CITED = 128;

/** Takes an annotation of either API. */
export function cite(answer, annotation) {
  const { url, title } = annotation?.url_citation ?? annotation ?? {};
  if (annotation?.type !== "url_citation" || !/^https?:\/\//i.test(url ?? "")) return;
  answer.cited ??= [];
  if (answer.cited.length < MAX_CITED && !answer.cited.some((one) => one.url === url)) answer.cited.push({ url, title: title || url });
}

/** In the order of the text, with the numbers that stand there: `{ number, url, host, title }`. */
export function sourcesOf(answer) {
  return (answer.cited ?? []).map(({ url, title }, at) => ({ number: at + 1, url, host: hostOf(url), title: title === url ? "" : title }));
}

export function hostOf(url) {
  try {
    return new URL(url).host.replace(/^www\./, "");
  } catch {
    return url;
  }
}
