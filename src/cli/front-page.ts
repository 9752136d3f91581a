import type { IncomingMessage, ServerResponse } from 'node:http';
import { DEFAULT_SEND_TIMEOUT_MS } from '../bounds.ts';
import { HttpError } from '../http/errors.ts';
import { fail, succeed } from '../http/responses.ts';
import { sendByNode } from '../http/sending.ts';
import type { ServeSettings } from './settings.ts';

/**
 * Answers calls of `/`: what listens here, and where it is described. It tells everybody, and so it names
 * no version. Links are relative, since a proxy may add a path.
 */
export function frontPage({
  docs,
}: Pick<ServeSettings, 'docs'>): (request: IncomingMessage, response: ServerResponse) => void {
  const links = { openapi: './openapi.json', ...(docs && { docs: './docs' }) };
  const page = succeed({ data: { name: 'tokenwright', ...links } });
  const refusal = fail(
    new HttpError('method_not_allowed', 'this address takes GET, HEAD', {
      headers: { allow: 'GET, HEAD' },
    }),
  );
  return (request, response) => {
    const { method = '' } = request;
    const answer = method === 'GET' || method === 'HEAD' ? page : refusal;
    void sendByNode(answer, method, response, DEFAULT_SEND_TIMEOUT_MS);
  };
}

/** Whether a call asks for the front page. */
export function isFrontPage({ url = '' }: IncomingMessage): boolean {
  return url === '/' || url.startsWith('/?');
}
