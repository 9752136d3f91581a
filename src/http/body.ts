import { Refusal } from './answers.ts';
import type { Body, Incoming } from './incoming.ts';

/** How much of a body is waited for, and how long. */
export interface BodyLimits {
  readonly maxBytes: number;
  /** For the whole body, from the first look at it. */
  readonly timeoutMs: number;
}

/**
 * Reads a JSON body; `undefined` when there is none, for which some platforms give an empty stream.
 * Stops reading at the limits, and at the first byte of another type.
 */
export async function readJson(incoming: Incoming, limits: BodyLimits): Promise<unknown> {
  const bytes = await readBytes(incoming, 'application/json', limits);
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new Refusal('invalid_json', 'the body must be JSON in UTF-8');
  }
}

/**
 * The bytes of a body of this type; of none, where there is no body. Stops reading at the limits,
 * and at the first byte of another type.
 */
export function readBytes(
  incoming: Incoming,
  type: string,
  limits: BodyLimits,
): Promise<Uint8Array> {
  return hasType(incoming, type)
    ? readAtMost(incoming, limits, () => tooLarge(limits))
    : readAtMost(incoming, { ...limits, maxBytes: 0 }, () => unsupportedMediaType(type));
}

function hasType(incoming: Incoming, expected: string): boolean {
  const header = incoming.header('content-type') ?? '';
  if (incoming.header('content-encoding') !== undefined) return false;
  if (header === expected) return true;
  const [type = '', ...parameters] = header.toLowerCase().split(';');
  const charset = parameters.map((text) => text.trim()).find((text) => text.startsWith('charset='));
  const isUtf8 = charset === undefined || /^charset=(?:utf-8|"utf-8")$/.test(charset);
  return type.trim() === expected && isUtf8;
}

/** The bytes of a body; what is more than `maxBytes` of them is refused as told. */
async function readAtMost(
  incoming: Incoming,
  { maxBytes, timeoutMs }: BodyLimits,
  refuse: () => Refusal,
): Promise<Uint8Array> {
  if (Number(incoming.header('content-length')) > maxBytes) throw refuse();
  const body = bodyOf(incoming);
  if (body === null) return new Uint8Array();
  if (typeof body === 'string' || body instanceof Uint8Array) {
    const bytes = Buffer.from(body);
    if (bytes.length > maxBytes) throw refuse();
    return bytes;
  }
  let isLate = false;
  // Giving up ends the read that is waited for. A race for each chunk would keep all of them.
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
      // Also texts, which a Node stream with an encoding gives.
      bytes.add(Buffer.from(chunk));
      if (bytes.length > maxBytes) {
        body.cancel();
        throw refuse();
      }
    }
  } catch (error) {
    if (error instanceof Refusal) throw error;
    throw brokenOff();
  } finally {
    clearTimeout(timer);
  }
}

/** Somebody else may have begun to read it. */
function bodyOf(incoming: Incoming): Body | null {
  try {
    return incoming.body;
  } catch (error) {
    throw error instanceof Refusal ? error : brokenOff();
  }
}

/** Bytes one behind the other. A list of chunks would take a hundred times the bytes it was sent. */
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

function unsupportedMediaType(type: string): Refusal {
  return new Refusal(
    'unsupported_media_type',
    `the body must be sent as "Content-Type: ${type}", without a Content-Encoding`,
  );
}

function tooLarge({ maxBytes }: BodyLimits): Refusal {
  return new Refusal('payload_too_large', `the body must be at most ${maxBytes} bytes`);
}

function brokenOff(): Refusal {
  return new Refusal('invalid_json', 'the body could not be read to its end');
}

/** As one that breaks off. Not 408, which clients and proxies take for a word to send it again. */
function tooSlow(timeoutMs: number): Refusal {
  return new Refusal('invalid_json', `the body must come to its end within ${timeoutMs} ms`);
}
