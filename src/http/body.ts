import { Refusal } from './answers.ts';

/**
 * Reads a JSON body; `undefined` when there is none, for which some platforms give an empty stream.
 * Stops reading at the limit, and at the first byte of another type.
 */
export async function readJson(request: Request, maxBytes: number): Promise<unknown> {
  const bytes = isJsonType(request.headers)
    ? await readBytes(request, maxBytes, tooLarge(maxBytes))
    : await readBytes(request, 0, unsupportedMediaType());
  if (bytes.length === 0) return undefined;
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes));
  } catch {
    throw new Refusal('invalid_json', 'the body must be JSON in UTF-8');
  }
}

function isJsonType(headers: Headers): boolean {
  const [type = '', ...parameters] = (headers.get('content-type') ?? '').toLowerCase().split(';');
  const charset = parameters.map((text) => text.trim()).find((text) => text.startsWith('charset='));
  const isUtf8 = charset === undefined || /^charset="?utf-8"?$/.test(charset);
  return type.trim() === 'application/json' && isUtf8 && !headers.has('content-encoding');
}

async function readBytes(
  { body, headers }: Request,
  maxBytes: number,
  refusal: Refusal,
): Promise<Uint8Array> {
  if (Number(headers.get('content-length')) > maxBytes) throw refusal;
  const chunks: Uint8Array[] = [];
  let length = 0;
  try {
    for await (const chunk of body ?? []) {
      // Also texts, which a Node stream with an encoding gives.
      const bytes = Buffer.from(chunk);
      length += bytes.byteLength;
      if (length > maxBytes) throw refusal;
      chunks.push(bytes);
    }
  } catch (error) {
    if (error === refusal) throw error;
    throw new Refusal('invalid_json', 'the body could not be read to its end');
  }
  return Buffer.concat(chunks, length);
}

function unsupportedMediaType(): Refusal {
  return new Refusal(
    'unsupported_media_type',
    'the body must be sent as "Content-Type: application/json", without a Content-Encoding',
  );
}

function tooLarge(maxBytes: number): Refusal {
  return new Refusal('payload_too_large', `the body must be at most ${maxBytes} bytes`);
}
