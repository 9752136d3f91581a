import type { IncomingMessage } from 'node:http';
import type { WholeResponse } from '../http/responses.ts';
import { type Page, publicPage } from './pages.ts';

/** The path of the console. */
export const CONSOLE = '/console';

/**
 * The console and its files, all under one route. Anyone may load it: it has no rights of its own.
 */
export function consolePage(): Page {
  let loaded: ReturnType<typeof loadConsole> | undefined;
  const make = async ({ url = '' }: IncomingMessage): Promise<WholeResponse> => {
    loaded ??= loadConsole();
    const answer = (await loaded)(new Request(`http://localhost${url}`));
    const { status, headers } = answer;
    const body = new Uint8Array(await answer.arrayBuffer());
    return { status, headers: Object.fromEntries(headers), body };
  };
  const page = publicPage(CONSOLE, make);
  return { ...page, isAt: (target) => page.isAt(target) || target.startsWith(`${CONSOLE}/`) };
}

/** Loads the console on its first request, so that it does not delay the start of the service. */
async function loadConsole() {
  const { tokenConsole } = await import('../console/index.ts');
  return tokenConsole({ basePath: CONSOLE, api: '/' });
}
