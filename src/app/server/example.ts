import { DEFAULT_SEND_TIMEOUT_MS } from '../../bounds.ts';
import { HttpError, internalError } from '../../http/errors.ts';
import { type BearerGuard, bearerGuard, sendResponse } from '../../http/index.ts';
import { originForm } from '../../http/node/listener.ts';
import { sendByNode } from '../../http/node/sending.ts';
import { fail, type HttpResponse, succeed } from '../../http/responses.ts';
import type { TokenService } from '../../index.ts';
import { parseScope } from '../../scope/index.ts';
import { clientOfGateway } from './client-address.ts';
import { EXAMPLE_CATALOG } from './files/catalog-files.ts';
import { EXAMPLE, type Page } from './pages.ts';
import type { ServeSettings } from './settings.ts';

/** Whether the service answers the calls of its example catalog. */
export function answersExample({
  catalog,
  example,
}: Pick<ServeSettings, 'catalog' | 'example'>): boolean {
  return catalog.length === 0 && example === 'on';
}

interface ExampleOptions extends Pick<ServeSettings, 'trustProxy' | 'clientHeader'> {
  readonly tokens: TokenService;
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** The host of each first segment of the example catalog: no two hosts share one. */
const HOSTS: ReadonlyMap<string, string> = new Map(
  EXAMPLE_CATALOG.map(parseScope).map(({ path, domain }) => [path, domain]),
);

/** What the example answers to all calls that a token allows. */
const ORDERS = {
  data: [
    { id: 1, customer: 'Ada', total: '12.00' },
    { id: 2, customer: 'Grace', total: '7.50' },
  ],
  note: 'an example: every call that a token allows gets this answer, and changes nothing',
};

/**
 * Answers the calls of the example catalog, as an API does that is guarded by its tokens: so that somebody
 * who looks at the service sees a token in use. `GET /example/orders` stands for
 * `GET https://orders.acme.example/orders`. Nothing behind it can be read or changed.
 */
export function examplePage(options: ExampleOptions): Page {
  const { tokens, onError } = options;
  const proxied = clientOfGateway(options);
  const guardOf = (domain: string): BearerGuard =>
    bearerGuard({
      tokens,
      domain,
      clientAddress: (request) =>
        proxied === undefined && 'socket' in request
          ? request.socket?.remoteAddress
          : proxied?.(request),
      onError,
    });
  const guards = new Map([...new Set(HOSTS.values())].map((host) => [host, guardOf(host)]));
  return {
    route: EXAMPLE,
    isAt: (target) => target.startsWith(`${EXAMPLE}/`),
    async answer(request, response) {
      const { method = 'GET' } = request;
      const send = (answer: HttpResponse) =>
        void sendByNode(answer, method, response, DEFAULT_SEND_TIMEOUT_MS);
      try {
        const url = originForm(request.url ?? '').slice(EXAMPLE.length);
        const guard = guards.get(HOSTS.get(/^\/([^/?]*)/.exec(url)?.[1] ?? '') ?? '');
        if (guard === undefined) return send(NOTHING_HERE);
        const { headers, rawHeaders, socket } = request;
        const outcome = await guard({ method, url, headers, rawHeaders, socket });
        if (!outcome.ok) return await sendResponse(outcome.response, response);
        const { token, grantedBy } = outcome;
        send(succeed({ ...ORDERS, account: token.account, grantedBy }));
      } catch (error) {
        onError?.(error);
        send(fail(internalError()));
      }
    },
  };
}

const NOTHING_HERE = fail(new HttpError('not_found', 'there is nothing at this address'));
