import { render } from 'preact';
import { App } from './app.tsx';
import { languageOf } from './language.ts';
import { type ConsoleTexts, translate } from './texts.ts';

const root = document.getElementById('console');
if (root !== null) {
  const { api = '', title = '', brand = '', texts } = root.dataset;
  const { lang, dir } = document.documentElement;
  translate(languageOf(lang, dir), texts === undefined ? {} : await readTexts(texts));
  // Relative to this file: its address includes any path that a proxy adds.
  const base = new URL(api, import.meta.url).href.replace(/\/$/, '');
  render(<App base={base} title={title} brand={brand} />, root);
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
