import type { IncomingMessage, RequestListener } from 'node:http';
import { DEFAULT_SEND_TIMEOUT_MS } from '../../bounds.ts';
import { HttpError, internalError } from '../../http/errors.ts';
import { type OAuthMetadataOptions, oauthMetadata, toNodeListener } from '../../http/index.ts';
import { sendByNode } from '../../http/node/sending.ts';
import { issuerMetadataUrl } from '../../http/oauth/metadata.ts';
import { publicFile, weightsOf } from '../../http/public-file.ts';
import { headerOf } from '../../http/request.ts';
import {
  COMMON_HEADERS,
  errorResponse,
  fail,
  type HttpResponse,
  type WholeResponse,
} from '../../http/responses.ts';
import { nextTurn } from '../../time/deadline.ts';
import type { ServeSettings } from './settings.ts';

/** A page that the service has in addition to the token handler. */
export interface Page {
  /** Its path, without anything that a caller chooses. */
  readonly route: string;
  /** @param target in origin form */
  isAt(target: string): boolean;
  readonly answer: RequestListener;
}

const METHOD_NOT_ALLOWED = fail(
  new HttpError('method_not_allowed', 'this address takes GET, HEAD', {
    headers: { allow: 'GET, HEAD' },
  }),
);

/**
 * Makes a page that needs no password. Its requests take no slot of the token handler.
 *
 * @param make must be cheap, since nothing limits how often it is called
 */
export function publicPage(
  route: string,
  make: (request: IncomingMessage) => HttpResponse | Promise<HttpResponse>,
): Page {
  return {
    route,
    isAt: (target) => target === route || target.startsWith(`${route}?`),
    async answer(request, response) {
      const { method = '' } = request;
      const isRead = method === 'GET' || method === 'HEAD';
      const answer = isRead ? await answerOf(() => make(request)) : METHOD_NOT_ALLOWED;
      await sendByNode(answer, method, response, DEFAULT_SEND_TIMEOUT_MS);
    },
  };
}

/** Makes a page that is the same for everybody, from its JSON. */
export function publicJsonPage(route: string, members: object): Page {
  return publicPage(route, jsonFile(members));
}

function jsonFile(members: object): (request: IncomingMessage) => WholeResponse {
  const file = publicFile(JSON.stringify(members), { 'content-type': 'application/json' });
  return (request) => file({ header: (name) => headerOf(request, name) });
}

/**
 * The page at `/`: the name of the service, and links to its other pages. Browsers are sent to the
 * console, if it is on. Anyone may read it, so it does not show the version. Links are relative, since a
 * proxy may add a path.
 */
export function frontPage({ console, docs }: Pick<ServeSettings, 'console' | 'docs'>): Page {
  const hasConsole = console === 'on';
  const links = {
    openapi: './openapi.json',
    ...(hasConsole && { console: CONSOLE_LINK }),
    ...(docs && { docs: './docs' }),
    healthz: './healthz',
    readyz: './readyz',
  };
  const data = { name: 'tokenwright', ...links };
  const file = jsonFile({ data, success: true, message: '', error: null });
  if (!hasConsole) return publicPage('/', file);
  return publicPage('/', (request) => {
    if (prefersHtml(request.headers.accept)) return TO_CONSOLE;
    const { headers, ...answer } = file(request);
    return { ...answer, headers: { ...headers, vary: `${headers['vary']}, accept` } };
  });
}

/** Browsers name HTML first; programs name JSON, or take anything. */
function prefersHtml(accept = ''): boolean {
  const weights = weightsOf(accept);
  const weightOf = (type: string, group: string) =>
    weights.get(type) ?? weights.get(group) ?? weights.get('*/*') ?? 0;
  return weightOf('text/html', 'text/*') > weightOf('application/json', 'application/*');
}

/**
 * Makes what a page shows at most once in each turn of the event loop, for all requests that have come
 * by then.
 */
export function madeOnceATurn<Made>(make: () => Promise<Made>): () => Promise<Made> {
  let making: Promise<Made> | undefined;
  return () => {
    making ??= nextTurn()
      .then(make)
      .finally(() => {
        making = undefined;
      });
    return making;
  };
}

async function answerOf(make: () => HttpResponse | Promise<HttpResponse>): Promise<HttpResponse> {
  try {
    return await make();
  } catch {
    return fail(internalError());
  }
}

/** Where the metadata of an issuer is served. */
export function metadataPathOf(issuer: string): string {
  return new URL(issuerMetadataUrl(issuer)).pathname;
}

/** The metadata for clients of OAuth. */
export function metadataPage(options: OAuthMetadataOptions): Page {
  const metadata = oauthMetadata(options);
  const route = metadataPathOf(options.issuer);
  return {
    route,
    isAt: (target) => target === route || target.startsWith(`${route}?`),
    answer: toNodeListener((request) => metadata(request) ?? errorResponse(undefined)),
  };
}

/** The path of the console. */
export const CONSOLE = '/console';

/** Where people type the user code of a request: a short address, which leads to the screen of the console. */
export const APPROVAL = '/approve';

/** Below it, the service answers calls of the example catalog. */
export const EXAMPLE = '/example';

const CONSOLE_LINK = `.${CONSOLE}`;

const TO_CONSOLE: WholeResponse = {
  status: 302,
  headers: { ...COMMON_HEADERS, location: CONSOLE_LINK, vary: 'accept' },
  body: null,
};

const TO_APPROVAL: WholeResponse = {
  status: 302,
  headers: { ...COMMON_HEADERS, location: `${CONSOLE_LINK}#/approve` },
  body: null,
};

/** The page that leads people to the screen where they approve requests. */
export function approvalPage(): Page {
  return publicPage(APPROVAL, () => TO_APPROVAL);
}

/** The page and its files. A path with dot segments or escapes could be read in two ways. */
const PATHS = /^\/console(?:\/(?:[\w-][\w.-]*)?)?(?:\?|$)/;

/**
 * The console and its files, all under one route. Anyone may load it: it has no rights of its own.
 */
export function consolePage(options: { readonly isExampleOn: boolean }): Page {
  let loaded: Promise<RequestListener> | undefined;
  return {
    route: CONSOLE,
    isAt: (target) => PATHS.test(target),
    async answer(request, response) {
      loaded ??= loadConsole(options);
      (await loaded)(request, response);
    },
  };
}

/** Loads the console on its first request, so that it does not delay the start of the service. */
async function loadConsole({
  isExampleOn,
}: {
  readonly isExampleOn: boolean;
}): Promise<RequestListener> {
  const { consoleOf } = await import('../console/handler.ts');
  const example = isExampleOn ? EXAMPLE : undefined;
  return toNodeListener(consoleOf({ basePath: CONSOLE, api: '/' }, example));
}
