import { render } from 'preact';
import { App } from './app.tsx';
import { languageOf } from './language.ts';
import { type ConsoleTexts, translate } from './texts.ts';

const root = document.getElementById('console');
if (root !== null) {
  const { api = '', title = '', brand = '', texts, example } = root.dataset;
  const { lang, dir } = document.documentElement;
  translate(languageOf(lang, dir), texts === undefined ? {} : await readTexts(texts));
  // Relative to this file: its address includes any path that a proxy adds.
  const addressOf = (path: string) => new URL(path, import.meta.url).href.replace(/\/$/, '');
  const base = addressOf(api);
  const exampleBase = example === undefined ? undefined : addressOf(example);
  render(<App base={base} example={exampleBase} title={title} brand={brand} />, root);
}

/** Reads a translation. If that fails, the page is shown in English. */
async function readTexts(address: string): Promise<ConsoleTexts> {
  try {
    const answer = await fetch(address);
    return answer.ok ? await answer.json() : {};
  } catch {
    return {};
  }
}
