import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import type { Logger } from 'pino';
import { systemClock } from '../../../time/clock.ts';
import { masked } from '../../terminal/masking.ts';
import type { CallObserver, EndedCall } from '../calls.ts';
import { optionalPackage } from '../optional-package.ts';
import { LineWriter, outputSink, type Sink } from './line-writer.ts';
import type { Log } from './log.ts';

/**
 * Letters, digits and hyphens: no value of a token has this form, and no line end gets into a log.
 */
const REQUEST_ID = /^[A-Za-z0-9-]{1,64}$/;
/** Version 00 of https://www.w3.org/TR/trace-context/#traceparent-header. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;

/**
 * A log for programs: one JSON object per line, with a line for each request. It never waits for
 * its reader: lines that do not fit into memory are lost, and counted.
 *
 * @throws {TokenError} `invalid_options` if `pino` is not installed
 */
export async function openJsonLog(sink: Sink = outputSink()): Promise<Log> {
  const { pino } = await optionalPackage('pino', '--log json', () => import('pino'));
  const lines = new LineWriter(sink, {
    lostLine: (count) => {
      const time = systemClock.now().toISOString();
      return JSON.stringify({ level: 'warn', time, lines: count, msg: 'lines were lost' });
    },
    // There is no other place to report it.
    onTrouble: () => {},
  });
  const logger = pino(
    {
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (level) => ({ level }) },
    },
    { write: (line: string) => lines.write(masked(line.trimEnd())) },
  );
  return {
    started: ({ message, members }) => logger.info(members, message),
    info: (message) => logger.info(message),
    warn: (message) => logger.warn(message),
    error: (message) => logger.error(message),
    fatal: (message) => logger.fatal(message),
    recordCall: callsIn(logger),
    close: () => lines.close(),
  };
}

/** Logs each call with a request id, and sends the id with the answer, to find one by the other. */
function callsIn(logger: Logger): CallObserver {
  return (request, response) => {
    const requestId = headerOf(request, 'x-request-id', REQUEST_ID) ?? randomUUID();
    const traceparent = headerOf(request, 'traceparent', TRACEPARENT);
    response.setHeader('x-request-id', requestId);
    return ({ method, route, status = null, seconds }) => {
      const durationMs = Math.round(seconds * 1e6) / 1000;
      const trace = traceparent !== undefined && { traceparent };
      logger[levelOf(status)](
        { method, route, status, durationMs, requestId, ...trace },
        'request',
      );
    };
  };
}

function levelOf(status: EndedCall['status'] | null): 'info' | 'warn' {
  return (status ?? 0) >= 500 ? 'warn' : 'info';
}

/** A header, if it has the right form: a caller can send anything. */
function headerOf({ headers }: IncomingMessage, name: string, form: RegExp): string | undefined {
  const value = headers[name];
  return typeof value === 'string' && form.test(value) ? value : undefined;
}
