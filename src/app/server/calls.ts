import type { IncomingMessage, ServerResponse } from 'node:http';
import { type Failure, failureIn } from '../../http/responses.ts';
import { performance } from '../../time/timers.ts';

/** A call that has ended. Holds no text that the caller chose. */
export interface EndedCall {
  /** Such as `GET`; `other` if no route takes it. */
  readonly method: string;
  /** Such as `/token/{token}`; `other` if no route matches. */
  readonly route: string;
  /** `undefined` if the client left before it got an answer. */
  readonly status: number | undefined;
  /** From the headers of the request to the end of the answer. */
  readonly seconds: number;
  /** What went wrong, if something did. */
  readonly failure: Failure | undefined;
}

/** Called when a call begins. Returns a function that is called when it ends. */
export type CallObserver = (
  request: IncomingMessage,
  response: ServerResponse,
) => (ended: EndedCall) => void;

/** The methods that some route takes, and OPTIONS, which browsers send as a preflight. */
const METHODS: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
]);

/** The route of an address that nothing serves. */
export const NO_ROUTE = 'other';

/** Reports a call to observers now and when it ends: its answer is sent, or its client has left. */
export function observeCall(
  observers: readonly CallObserver[],
  route: string,
  request: IncomingMessage,
  response: ServerResponse,
): void {
  const start = performance.now();
  const { method = '' } = request;
  const ends = observers.map((observe) => observe(request, response));
  response.once('close', () => {
    const ended = {
      method: METHODS.has(method) ? method : 'other',
      route,
      status: response.headersSent ? response.statusCode : undefined,
      seconds: (performance.now() - start) / 1000,
      failure: failureIn(response),
    };
    for (const end of ends) end(ended);
  });
}
