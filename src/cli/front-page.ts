import { succeed } from '../http/responses.ts';
import { CONSOLE } from './console-page.ts';
import { openPage, type Page } from './pages.ts';
import type { ServeSettings } from './settings.ts';

/**
 * The page at `/`: what listens here, and where it is described. It tells everybody, and so it names no
 * version. Links are relative, since a proxy may add a path.
 */
export function frontPage({ console, docs }: Pick<ServeSettings, 'console' | 'docs'>): Page {
  const links = {
    openapi: './openapi.json',
    ...(console === 'on' && { console: `.${CONSOLE}` }),
    ...(docs && { docs: './docs' }),
    healthz: './healthz',
    readyz: './readyz',
  };
  const page = succeed({ data: { name: 'tokenwright', ...links } });
  return openPage('/', () => page);
}
