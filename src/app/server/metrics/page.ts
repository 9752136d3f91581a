import { createServer, type Server } from 'node:http';
import { HEADERS_TIMEOUT_MS, REQUEST_TIMEOUT_MS } from '../../../bounds.ts';
import { HttpError } from '../../../http/errors.ts';
import { originForm } from '../../../http/node/listener.ts';
import { sendByNode } from '../../../http/node/sending.ts';
import { inTurn } from '../../../http/node/turns.ts';
import { COMMON_HEADERS, fail } from '../../../http/responses.ts';
import { madeOnceATurn, type Page, publicPage } from '../pages/pages.ts';
import type { Metrics } from './metrics.ts';

const TEXT = 'text/plain; version=0.0.4; charset=utf-8';
/** In OpenMetrics, samples of counters end in this, and their families do not. */
const TOTAL = '_total';
const OPEN_METRICS = 'application/openmetrics-text; version=1.0.0; charset=utf-8';

/** The page that Prometheus reads: in OpenMetrics if it asks for that, else in the text format. */
export function metricsPage(metrics: Metrics): Page {
  const text = madeOnceATurn(() => metrics.text());
  const openText = madeOnceATurn(async () => toOpenMetrics(await metrics.text()));
  return publicPage('/metrics', async ({ headers: { accept = '' } }) => {
    const isOpen = accept.includes('application/openmetrics-text');
    return {
      status: 200,
      headers: { 'content-type': isOpen ? OPEN_METRICS : TEXT, ...COMMON_HEADERS },
      body: await (isOpen ? openText() : text()),
    };
  });
}

/**
 * Converts the text format to OpenMetrics. prom-client can write OpenMetrics itself, but changes
 * the names of its counters when it does: the next answer in the text format would be wrong.
 */
function toOpenMetrics(text: string): string {
  const lines = text.split('\n').filter((line) => line !== '');
  const counters = new Set(
    lines.filter((line) => line.endsWith(`${TOTAL} counter`)).map((line) => line.split(' ')[2]),
  );
  const written = lines.map((line) => {
    const [mark, , name = ''] = line.split(' ', 3);
    const isAbout = mark === '#' && counters.has(name);
    return isAbout ? line.replace(name, name.slice(0, -TOTAL.length)) : line;
  });
  return `${written.join('\n')}\n# EOF\n`;
}

/** A server of this page alone. */
export function pageServer(page: Page): Server {
  const options = { requestTimeout: REQUEST_TIMEOUT_MS, headersTimeout: HEADERS_TIMEOUT_MS };
  const nothing = fail(new HttpError('not_found', 'there is nothing at this address'));
  return createServer(options, (request, response) => {
    const { url = '', method = '' } = request;
    if (page.isAt(originForm(url)))
      void inTurn(request, response, () => page.answer(request, response));
    else void sendByNode(nothing, method, response, REQUEST_TIMEOUT_MS);
  });
}
