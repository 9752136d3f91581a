import { createHash } from 'node:crypto';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { DEFAULT_SEND_TIMEOUT_MS } from '../bounds.ts';
import { fromFetch, type HttpRequest, ownForms } from './request.ts';
import { COMMON_HEADERS, toResponse, type WholeResponse } from './responses.ts';

/** The part of a request by which a public file is answered. */
export interface FileRequest {
  header(name: 'accept-encoding' | 'if-none-match'): string | undefined;
}

/** Answers `GET` and `HEAD` for a page or file that is the same for everybody. */
export type PublicFile = (request: FileRequest) => WholeResponse;

/** Its other headers, and how it may be cached: by default, it is asked for again each time. */
export type FileHeaders = Headers & { readonly 'content-type': string };

type Headers = Readonly<Record<string, string>>;

type Coding = 'br' | 'gzip' | 'identity';

/** A file in one coding. */
interface Variant {
  readonly tag: string;
  readonly whole: WholeResponse;
  readonly notModified: WholeResponse;
}

// The highest quality takes fifty times as long for a tenth fewer bytes.
const BROTLI_QUALITY = 5;
/** Shorter files stay as they are: with its headers, one would hardly be shorter. */
const MIN_COMPRESSED_BYTES = 1024;

/**
 * Prepares a file for everybody: an answer costs only its headers, since nothing limits how often callers
 * without credentials ask. The bytes are made once, and those of a coding with the first request for it.
 */
export function publicFile(content: string | Uint8Array, headers: FileHeaders): PublicFile {
  const bytes = Buffer.from(content);
  const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 22);
  const isLong = bytes.length >= MIN_COMPRESSED_BYTES;
  const variants = new Map<Coding, Variant>();
  return (request) => {
    const coding = codingFor(request.header('accept-encoding'), isLong);
    let variant = variants.get(coding);
    if (variant === undefined) {
      variant = variantOf(bytes, coding, { hash, headers });
      variants.set(coding, variant);
    }
    const condition = request.header('if-none-match');
    const isKnown = condition !== undefined && names(condition, variant.tag);
    return isKnown ? variant.notModified : variant.whole;
  };
}

/** Only files and calls of its own origin: no inline script or style, no frame, no form. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
];

/**
 * Makes the files of a page. Each gets the content security policy of our pages.
 *
 * @param trustedTypes what else the policy says, about text that becomes code or markup
 */
export function pageFiles(trustedTypes: readonly string[], more: Headers = {}) {
  const policy = [...PAGE_POLICY, ...trustedTypes].join('; ');
  const file = (content: string | Uint8Array, type: string, others: Headers = {}): PublicFile =>
    publicFile(content, {
      ...others,
      'content-type': `${type}; charset=utf-8`,
      'content-security-policy': policy,
      ...more,
    });
  return {
    file,
    /** A file whose address changes with its content: browsers may keep it for a year. */
    immutable: (content: string | Uint8Array, type: string): PublicFile =>
      file(content, type, { 'cache-control': 'public, max-age=31536000, immutable' }),
  };
}

/** A Fetch handler of files. Over Node.js, their bytes go to the socket as they are. */
export function publicHandler(
  answer: (request: HttpRequest) => WholeResponse,
): (request: Request) => Response {
  const handler = (request: Request) => toResponse(answer(fromFetch(request)), request.method);
  ownForms.set(handler, {
    answer: async (request, send) => send(answer(request), DEFAULT_SEND_TIMEOUT_MS),
  });
  return handler;
}

function variantOf(
  bytes: Buffer<ArrayBuffer>,
  coding: Coding,
  { hash, headers }: { readonly hash: string; readonly headers: FileHeaders },
): Variant {
  const body = encoded(bytes, coding);
  // A strong tag names exact bytes, so each coding has its own.
  const tag = coding === 'identity' ? `"${hash}"` : `"${hash}-${coding}"`;
  const { 'content-type': type, ...others } = headers;
  const shared = {
    ...COMMON_HEADERS,
    'cache-control': 'no-cache',
    ...others,
    etag: tag,
    vary: 'accept-encoding',
  };
  const whole = {
    ...shared,
    'content-type': type,
    'content-length': String(body.length),
    ...(coding !== 'identity' && { 'content-encoding': coding }),
  };
  return {
    tag,
    whole: { status: 200, headers: whole, body },
    notModified: { status: 304, headers: shared, body: null },
  };
}

function encoded(bytes: Buffer<ArrayBuffer>, coding: Coding): Uint8Array<ArrayBuffer> {
  if (coding === 'gzip') return gzipSync(bytes);
  if (coding === 'identity') return bytes;
  const params = {
    [constants.BROTLI_PARAM_QUALITY]: BROTLI_QUALITY,
    [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length,
  };
  return brotliCompressSync(bytes, { params });
}

/**
 * The coding for an `Accept-Encoding` header (RFC 9110 section 12.5.3). A coding is used if the client
 * names it. `*` alone asks for none, but counts if the client refuses the file as it is. If it refuses
 * everything, it gets the file as it is.
 */
function codingFor(header: string | undefined, isLong: boolean): Coding {
  // What nearly all clients send, or rather do not send.
  if (header === undefined || header === '') return 'identity';
  const weights = weightsOf(header);
  const rest = weights.get('*');
  const isPlainRefused = (weights.get('identity') ?? rest) === 0;
  const plain = isPlainRefused ? 0 : isLong ? (weights.get('identity') ?? 0) : 1;
  const weightOf = (coding: Coding) => weights.get(coding) ?? (isPlainRefused ? (rest ?? 0) : 0);
  const [br, gzip] = [weightOf('br'), weightOf('gzip')];
  const best = Math.max(br, gzip);
  if (best === 0 || best < plain || (!isLong && !isPlainRefused)) return 'identity';
  return br >= gzip ? 'br' : 'gzip';
}

/**
 * The weight of each name in a header of preferences, such as a coding or a media type, from 0 for one that
 * is refused. Leaves out what cannot be read, and names with parameters.
 */
export function weightsOf(header: string): ReadonlyMap<string, number> {
  const weights = new Map<string, number>();
  for (const part of header.toLowerCase().split(',')) {
    const [, name, weight = '1'] =
      /^\s*([\w*.+/-]+)\s*(?:;\s*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)\s*)?$/.exec(part) ?? [];
    if (name !== undefined) weights.set(name === 'x-gzip' ? 'gzip' : name, Number(weight));
  }
  return weights;
}

/** Whether an `If-None-Match` header names a tag, compared weakly (RFC 9110 section 13.1.2). */
function names(condition: string, tag: string): boolean {
  if (condition.trim() === '*') return true;
  return [...condition.matchAll(/"[^"]*"/g)].some(([named]) => named === tag);
}
