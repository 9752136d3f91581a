import { type HttpError, STATUS, toHttpError } from './errors.ts';

/** Characters of one piece of a long answer, and one token more. @bound */
export const ANSWER_PIECE_LENGTH = 65_536;

const RETRY_AFTER_SECONDS = '1';

/** The headers of every response. */
export const COMMON_HEADERS = {
  'cache-control': 'no-store',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
} as const;

/** A response of the service, before it becomes one of Fetch or is sent by Node. */
export type HttpResponse = WholeResponse | StreamedResponse;

interface Head {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** What a failure is, for logs of the host: it is not sent. */
  readonly failure?: Failure;
}

/** The code of a failure, and the reason where only the host learns it. */
export interface Failure {
  readonly code: string;
  readonly reason?: string | undefined;
}

const failures = new WeakMap<object, Failure>();

/** Notes the failure that a response of Fetch or of Node tells. */
export function noteFailure(response: object, failure: Failure | undefined): void {
  if (failure !== undefined) failures.set(response, failure);
}

/** The failure that was noted for a response; undefined if it tells none. */
export function failureIn(response: object): Failure | undefined {
  return failures.get(response);
}

export interface WholeResponse extends Head {
  readonly body: string | Uint8Array<ArrayBuffer> | null;
}

/** A response whose body is made piece by piece, each after the one before it was taken. */
export interface StreamedResponse extends Head {
  readonly pieces: Iterable<string>;
}

/** A success: always 200. */
export function succeed(
  members: object,
  headers: Readonly<Record<string, string>> = {},
): WholeResponse {
  return jsonResponse(200, { ...members, success: true, message: '', error: null }, headers);
}

/** A success with a list. A long list becomes JSON piece by piece. */
export function succeedWithList<Item>(
  items: readonly Item[],
  toJson: (item: Item) => unknown,
  more: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): HttpResponse {
  const empty = succeed({ data: [], ...more }, headers);
  const end = String(empty.body).slice(EMPTY_LIST.length);
  const pieces = listPieces(items, toJson, end);
  const [first, second] = [pieces.next(), pieces.next()];
  if (second.done) return { ...empty, body: first.value as string };
  const { status, headers: head } = empty;
  return { status, headers: head, pieces: resumed([first.value as string, second.value], pieces) };
}

const EMPTY_LIST = '{"data":[]';

function* listPieces<Item>(
  items: readonly Item[],
  toJson: (item: Item) => unknown,
  end: string,
): Generator<string, void> {
  let piece = '{"data":[';
  let separator = '';
  for (const item of items) {
    piece += separator + JSON.stringify(toJson(item));
    separator = ',';
    if (piece.length < ANSWER_PIECE_LENGTH) continue;
    yield piece;
    piece = '';
  }
  yield `${piece}]${end}`;
}

function* resumed(before: readonly string[], rest: Iterable<string>): Generator<string, void> {
  yield* before;
  yield* rest;
}

/** A failure in the envelope of the service. */
export function fail(failure: HttpError): WholeResponse {
  const { code, message, details, headers } = failure;
  const [status, error] = STATUS[code];
  const body = { success: false, message, error, code, data: null, details };
  return { ...jsonResponse(status, body, headers), failure };
}

/**
 * The answer to a request whose call of the service failed, for routes of your own: as the token handler
 * answers, in its envelope. Errors of other kinds, and those of a program, are 500 and say nothing more.
 *
 * @param error what was thrown or rejected
 * @example
 * try {
 *   return Response.json(await tokens.list({ account: 'ada' }));
 * } catch (error) {
 *   console.error(error);
 *   return errorResponse(error);
 * }
 */
export function errorResponse(error: unknown): Response {
  return toResponse(fail(toHttpError(error)), 'GET');
}

/** JSON without the envelope. */
export function jsonResponse(
  status: number,
  body: Readonly<Record<string, unknown>>,
  headers: Readonly<Record<string, string>> = {},
): WholeResponse {
  return {
    status,
    headers: {
      'content-type': 'application/json',
      ...(status === 503 && { 'retry-after': RETRY_AFTER_SECONDS }),
      ...COMMON_HEADERS,
      ...headers,
    },
    body: JSON.stringify(body),
  };
}

/** The Fetch `Response`; to `HEAD` without the body. */
export function toResponse(whole: WholeResponse, method: string): Response {
  const { status, headers, body, failure } = whole;
  const response = new Response(method === 'HEAD' ? null : body, { status, headers });
  noteFailure(response, failure);
  return response;
}
