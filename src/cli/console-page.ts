import type { IncomingMessage } from 'node:http';
import type { WholeResponse } from '../http/responses.ts';
import { openPage, type Page } from './pages.ts';

/** The path of the console. */
export const CONSOLE = '/console';

/** The console and its files, all under one route. It is for everybody: it has no rights of its own. */
export function consolePage(): Page {
  let loaded: ReturnType<typeof loadConsole> | undefined;
  const make = async ({ url = '' }: IncomingMessage): Promise<WholeResponse> => {
    loaded ??= loadConsole();
    const answer = (await loaded)(new Request(`http://localhost${url}`));
    const { status, headers } = answer;
    const body = new Uint8Array(await answer.arrayBuffer());
    return { status, headers: Object.fromEntries(headers), body };
  };
  const page = openPage(CONSOLE, make);
  return { ...page, isAt: (target) => page.isAt(target) || target.startsWith(`${CONSOLE}/`) };
}

/** Loaded late, so that a service starts as soon as without it. */
async function loadConsole() {
  const { tokenConsole } = await import('../console/index.ts');
  return tokenConsole({ basePath: CONSOLE, api: '/' });
}
