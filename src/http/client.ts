import type { ROUTES, RouteName } from './routes.ts';
import type { Answers, WireToken } from './wire.ts';

/** The answer to a call. */
export type AnswerTo<Name extends RouteName> = (typeof ROUTES)[Name] extends {
  readonly answer: infer Answer extends keyof Answers;
}
  ? Answers[Answer]
  : unknown;

export interface Call {
  /** The id of the token in the path. */
  readonly token?: string | undefined;
  /** The user code of the request in the path, as it was typed. */
  readonly code?: string | undefined;
  /** Those that are `undefined` are not sent. */
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>> | undefined;
  /** Sent as JSON, or as a form. */
  readonly body?: object | undefined;
  readonly ifVersion?: number | undefined;
  /** The value of a token, instead of the credentials that `send` adds. */
  readonly bearer?: string | undefined;
}

/** Sends a request to a path of the service. */
export type Send = (path: string, init: SentRequest) => Promise<Response>;

export interface SentRequest extends RequestInit {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
}

export interface ClientOptions {
  readonly send: Send;
  /** Reads an answer. @default all of it, as JSON */
  readonly read?: ((answer: Response) => Promise<unknown>) | undefined;
  /** Whether an answer is one that the service gives. @default it is not checked */
  readonly isAnswer?: ((name: RouteName, answer: unknown) => boolean) | undefined;
}

/** A call that failed, with the message of the service. */
export class ApiError extends Error {
  /** A code of the service, or `unreachable` if it did not answer. */
  readonly code: string;
  readonly details: { readonly member?: string; readonly [name: string]: unknown };
  /** How long to wait before the next try, if the service says so. */
  readonly retryAfterSeconds: number | undefined;
  /** Of HTTP; 0 without an answer. */
  readonly status: number;

  constructor(
    code: string,
    message: string,
    {
      details = {},
      retryAfterSeconds,
      status = 0,
    }: Partial<Pick<ApiError, 'details' | 'retryAfterSeconds' | 'status'>> = {},
  ) {
    super(message);
    this.code = code;
    this.details = details;
    this.retryAfterSeconds = retryAfterSeconds;
    this.status = status;
  }
}

/** For an answer that does not come from a token service. */
export function unreachable(status = 0): ApiError {
  return new ApiError('unreachable', '', { status });
}

/**
 * Makes the calls of the service, by their routes. It runs in a browser, too. The types of answers are
 * those that the service promises.
 */
export class ServiceClient {
  readonly #send: Send;
  readonly #read: NonNullable<ClientOptions['read']>;
  readonly #isAnswer: ClientOptions['isAnswer'];

  constructor({ send, read = (answer) => answer.json(), isAnswer }: ClientOptions) {
    this.#send = send;
    this.#read = read;
    this.#isAnswer = isAnswer;
  }

  /** @throws {ApiError} */
  async call<Name extends RouteName>(name: Name, call: Call = {}): Promise<AnswerTo<Name>> {
    const [method = '', path = ''] = name.split(' ');
    const response = await this.#send(pathOf(path, call), requestOf(method, call));
    const answer = await this.#read(response).catch(() => undefined);
    if (!response.ok) throw failureOf(response, answer);
    if (answer === undefined || this.#isAnswer?.(name, answer) === false) {
      throw unreachable(response.status);
    }
    return answer as AnswerTo<Name>;
  }
}

function pathOf(path: string, { token = '', code = '', query = {} }: Call): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) search.set(name, String(value));
  }
  const text = search.toString();
  const named = path.replace('{token}', token).replace('{code}', encodeURIComponent(code));
  return named + (text === '' ? '' : `?${text}`);
}

function requestOf(method: string, { body, ifVersion, bearer }: Call): SentRequest {
  const isForm = body instanceof URLSearchParams;
  return {
    method,
    headers: {
      ...(body !== undefined && !isForm && { 'content-type': 'application/json' }),
      ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
      ...(ifVersion !== undefined && { 'if-match': `"${ifVersion}"` }),
    },
    ...(body !== undefined && { body: isForm ? body : JSON.stringify(body) }),
  };
}

/** A failure of the service, in its envelope or in the form of OAuth, or an answer of a gateway. */
function failureOf({ status, headers }: Response, answer: unknown): ApiError {
  const { message, code, details, error, error_description: description } = Object(answer);
  const [name, reason] = message === undefined ? [error, description] : [code, message];
  const seconds = headers.get('retry-after') ?? '';
  const isOurs = typeof name === 'string' && typeof reason === 'string';
  return new ApiError(isOurs ? name : 'unreachable', typeof reason === 'string' ? reason : '', {
    details: Object(details),
    status,
    ...(/^\d{1,9}$/.test(seconds) && { retryAfterSeconds: Number(seconds) }),
  });
}

/** A token of an answer that has its members beside those of the envelope. */
export function tokenOf({
  success: _,
  message: __,
  error: ___,
  ...token
}: Answers['IssuedToken']): WireToken {
  return token;
}
