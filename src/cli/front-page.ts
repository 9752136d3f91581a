import { succeed } from '../http/responses.ts';
import { openPage, type Page } from './pages.ts';
import type { ServeSettings } from './settings.ts';

/**
 * The page at `/`: what listens here, and where it is described. It tells everybody, and so it names no
 * version. Links are relative, since a proxy may add a path.
 */
export function frontPage({ docs }: Pick<ServeSettings, 'docs'>): Page {
  const links = {
    openapi: './openapi.json',
    ...(docs && { docs: './docs' }),
    healthz: './healthz',
    readyz: './readyz',
  };
  const page = succeed({ data: { name: 'tokenwright', ...links } });
  return openPage('/', () => page);
}
