import { describeRounded, hasTooManyMembers, placeOf, roundedNumberIn } from '../text/json.ts';
import { clearTimeout, setTimeout } from '../time/timers.ts';
import { HttpError, overloaded } from './errors.ts';
import type { Body, HttpMessage } from './request.ts';
import type { Reservation } from './slots.ts';

/** The limits of a body, in size and in time. */
export interface BodyLimits {
  readonly maxBytes: number;
  /** For the whole body, from the first read on. */
  readonly timeoutMs: number;
}

/**
 * Parses JSON, and refuses numbers that would be rounded. Returns `undefined` without a body, which some
 * platforms pass as an empty stream.
 */
export function parseJson(bytes: Uint8Array): unknown {
  if (bytes.length === 0) return undefined;
  // Drops a byte order mark.
  const text = orInvalidJson(() => new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  if (hasTooManyMembers(text)) {
    throw new HttpError('invalid_request', 'the body has more members than any call takes');
  }
  const value = orInvalidJson((): unknown => JSON.parse(text));
  const rounded = roundedNumberIn(text);
  if (rounded === undefined) return value;
  const member = placeOf(rounded);
  const details = member === undefined ? undefined : { member };
  throw new HttpError('invalid_request', describeRounded(rounded), { details });
}

function orInvalidJson<Result>(read: () => Result): Result {
  try {
    return read();
  } catch {
    throw new HttpError('invalid_json', 'the body must be JSON in UTF-8');
  }
}

/**
 * Reads a body of this media type; without a body, no bytes. Stops reading at the limits, and at the
 * first byte of another type.
 *
 * @param slots takes more slots as more of the body is in memory
 */
export function readBytes(
  request: HttpMessage,
  type: string,
  limits: BodyLimits,
  slots: Reservation,
): Promise<Uint8Array> {
  return hasType(request, type)
    ? readAtMost(request, limits, slots, () => tooLarge(limits))
    : readAtMost(request, { ...limits, maxBytes: 0 }, slots, () => unsupportedMediaType(type));
}

function hasType(request: HttpMessage, expected: string): boolean {
  const header = request.header('content-type') ?? '';
  if (request.header('content-encoding') !== undefined) return false;
  if (header === expected) return true;
  const [type = '', ...parameters] = header.toLowerCase().split(';');
  const charset = parameters.map((text) => text.trim()).find((text) => text.startsWith('charset='));
  const isUtf8 = charset === undefined || /^charset=(?:utf-8|"utf-8")$/.test(charset);
  return type.trim() === expected && isUtf8;
}

/** The bytes of a body; rejects with `refuse()` if there are more than `maxBytes`. */
async function readAtMost(
  request: HttpMessage,
  { maxBytes, timeoutMs }: BodyLimits,
  slots: Reservation,
  refuse: () => HttpError,
): Promise<Uint8Array> {
  if (Number(request.header('content-length')) > maxBytes) throw refuse();
  const body = bodyOf(request);
  if (body === null) return new Uint8Array();
  if (typeof body === 'string' || body instanceof Uint8Array) {
    const bytes = Buffer.from(body);
    if (bytes.length > maxBytes) throw refuse();
    if (!slots.holdBytes(bytes.length)) throw overloaded();
    return bytes;
  }
  let isLate = false;
  // Cancelling ends the pending read. A race for each chunk would retain all chunks in memory.
  const timer = setTimeout(() => {
    isLate = true;
    body.cancel();
  }, timeoutMs);
  const bytes = new GrowingBytes();
  try {
    for (;;) {
      const chunk = await body.next();
      if (isLate) throw tooSlow(timeoutMs);
      if (chunk === undefined) return bytes.taken();
      // A Node stream with an encoding emits strings.
      bytes.add(Buffer.from(chunk));
      const hasRoom = bytes.length <= maxBytes && slots.holdBytes(bytes.length);
      if (!hasRoom) {
        body.cancel();
        throw bytes.length > maxBytes ? refuse() : overloaded();
      }
    }
  } catch (error) {
    if (error instanceof HttpError) throw error;
    throw brokenOff();
  } finally {
    clearTimeout(timer);
  }
}

/** Throws if somebody else has begun to read the body. */
function bodyOf(request: HttpMessage): Body | null {
  try {
    return request.body;
  } catch (error) {
    throw error instanceof HttpError ? error : brokenOff();
  }
}

/** Collects chunks in one buffer. A list of tiny chunks would take a hundred times their bytes. */
class GrowingBytes {
  length = 0;
  #space: Buffer = Buffer.alloc(0);

  add(chunk: Buffer): void {
    const needed = this.length + chunk.length;
    if (needed > this.#space.length) {
      const larger = Buffer.alloc(Math.max(needed, 2 * this.#space.length));
      this.#space.copy(larger, 0, 0, this.length);
      this.#space = larger;
    }
    chunk.copy(this.#space, this.length);
    this.length = needed;
  }

  taken(): Uint8Array {
    return this.#space.subarray(0, this.length);
  }
}

function unsupportedMediaType(type: string): HttpError {
  return new HttpError(
    'unsupported_media_type',
    `the body must be sent as "Content-Type: ${type}", without a Content-Encoding`,
  );
}

function tooLarge({ maxBytes }: BodyLimits): HttpError {
  return new HttpError('payload_too_large', `the body must be at most ${maxBytes} bytes`);
}

function brokenOff(): HttpError {
  return new HttpError('invalid_json', 'the body could not be read to its end');
}

/** Not 408: clients and proxies would send the request again. */
function tooSlow(timeoutMs: number): HttpError {
  return new HttpError('invalid_json', `the body must come to its end within ${timeoutMs} ms`);
}
