import type { ServeSettings } from '../settings.ts';
import { CONSOLE } from './console-page.ts';
import { type Page, publicJsonPage } from './pages.ts';

/**
 * The page at `/`: the name of the service, and links to its other pages. Anyone may read it, so it
 * does not show the version. Links are relative, since a proxy may add a path.
 */
export function frontPage({ console, docs }: Pick<ServeSettings, 'console' | 'docs'>): Page {
  const links = {
    openapi: './openapi.json',
    ...(console === 'on' && { console: `.${CONSOLE}` }),
    ...(docs && { docs: './docs' }),
    healthz: './healthz',
    readyz: './readyz',
  };
  const data = { name: 'tokenwright', ...links };
  return publicJsonPage('/', { data, success: true, message: '', error: null });
}
