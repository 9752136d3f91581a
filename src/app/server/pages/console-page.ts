import type { RequestListener } from 'node:http';
import { toNodeListener } from '../../../http/node/listener.ts';
import type { Page } from './pages.ts';

/** The path of the console. */
export const CONSOLE = '/console';

/** The page and its files. A path with dot segments or escapes could be read in two ways. */
const PATHS = /^\/console(?:\/(?:[\w-][\w.-]*)?)?(?:\?|$)/;

/**
 * The console and its files, all under one route. Anyone may load it: it has no rights of its own.
 */
export function consolePage(): Page {
  let loaded: Promise<RequestListener> | undefined;
  return {
    route: CONSOLE,
    isAt: (target) => PATHS.test(target),
    async answer(request, response) {
      loaded ??= loadConsole();
      (await loaded)(request, response);
    },
  };
}

/** Loads the console on its first request, so that it does not delay the start of the service. */
async function loadConsole(): Promise<RequestListener> {
  const { tokenConsole } = await import('../../console/index.ts');
  return toNodeListener(tokenConsole({ basePath: CONSOLE, api: '/' }));
}
