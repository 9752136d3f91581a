// Writes pages from the sources: settings, commands and calls over HTTP.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { commandsPage } from './commands.ts';
import { httpPage } from './http.ts';
import { settingsPage } from './settings.ts';

/** The pages, by their place in the repository. */
export async function manual(): Promise<ReadonlyMap<string, string>> {
  return new Map([
    ['docs/service/settings.md', settingsPage()],
    ['docs/service/commands.md', commandsPage()],
    ['docs/service/http.md', await httpPage()],
  ]);
}

if (import.meta.main) {
  mkdirSync(new URL('../../service', import.meta.url), { recursive: true });
  for (const [name, text] of await manual()) {
    const file = new URL(`../../../${name}`, import.meta.url);
    if (!existsSync(file) || readFileSync(file, 'utf8') !== text) writeFileSync(file, text);
  }
}
