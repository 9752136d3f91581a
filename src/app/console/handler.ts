import { createHash } from 'node:crypto';
import * as z from 'zod/mini';
import { type PublicFile, pageFiles, publicHandler } from '../../http/public-file.ts';
import type { HttpRequest } from '../../http/request.ts';
import { COMMON_HEADERS, type WholeResponse } from '../../http/responses.ts';
import { once } from '../../inputs/once.ts';
import { checkOptions, readBy, strict } from '../../inputs/schemas.ts';
import { shown } from '../../text/wording.ts';
import { type Asset, pageAssets } from './assets.ts';
import { isPlural, type PluralText, placeholdersOf, type TextGroup } from './page/phrases.ts';
import { type ConsoleTexts, ENGLISH_TEXTS } from './page/texts.ts';

const FORMS = ['zero', 'one', 'two', 'few', 'many', 'other'];
/** In characters; several times what the longest English text has. */
const MAX_TEXT_LENGTH = 2000;

/** Accepts any part of a translation. Errors name the text that is wrong. */
const translation = once(() => groupSchema(ENGLISH_TEXTS, 'texts') as z.ZodMiniType<ConsoleTexts>);

function groupSchema(texts: TextGroup, place: string): z.ZodMiniType {
  const members = Object.entries(texts).map(([key, text]): [string, z.ZodMiniType] => {
    const name = `${place}.${key}`;
    const isText = typeof text === 'string' || isPlural(text);
    return [key, z.optional(isText ? textSchema(text, name) : groupSchema(text, name))];
  });
  return strict(Object.fromEntries(members));
}

function textSchema(text: string | PluralText, name: string): z.ZodMiniType {
  return readBy((value, refuse) => {
    const message = problemOf(value, text);
    return message === undefined ? value : refuse(`${name} ${message}`);
  });
}

/** Why a value cannot replace a text; `undefined` if it can. */
function problemOf(value: unknown, text: string | PluralText): string | undefined {
  const forms = formsOf(value, isPlural(text));
  if (forms === undefined) {
    const plural = isPlural(text) ? `, or an object { ${FORMS.join(', ')} } of such texts` : '';
    return `must be a text of 1 to ${MAX_TEXT_LENGTH} characters${plural}; got ${shown(value)}`;
  }
  const allowed = placeholdersOf(text);
  const unknown = forms
    .flatMap((form) => [...placeholdersOf(form)])
    .find((name) => !allowed.has(name));
  if (unknown === undefined) return undefined;
  const known = [...allowed].map((name) => `{${name}}`).join(', ');
  return `cannot have {${unknown}}; ${known === '' ? 'nothing goes into it' : `it has ${known}`}`;
}

function formsOf(value: unknown, takesForms: boolean): string[] | undefined {
  if (isText(value)) return [value];
  if (!takesForms || typeof value !== 'object' || value === null) return undefined;
  const entries = Object.entries(value).filter(([, form]) => form !== undefined);
  const isRight = entries.every(([name, form]) => FORMS.includes(name) && isText(form));
  if (!isRight || !entries.some(([name]) => name === 'other')) return undefined;
  return entries.map(([, form]) => form as string);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value.length > 0 && value.length <= MAX_TEXT_LENGTH;
}

/** The options of `tokenConsole`. */
export interface TokenConsoleOptions {
  /**
   * The path of the page, such as `/console`. Its files are below it. Leave out a prefix that a
   * proxy adds: the page uses relative addresses.
   */
  readonly basePath: string;
  /**
   * The path of the token service, at the same origin: the `basePath` of its `tokenHandler`, or `/`
   * for a service at the root. As for `basePath`, leave out a prefix that a proxy adds.
   */
  readonly api: string;
  /** The title of the page: 1 to 100 characters. @default 'Access tokens', or its translation */
  readonly title?: string | undefined;
  /** The name of your product, shown at the top of the page: 1 to 100 characters. @default none */
  readonly brand?: string | undefined;
  /**
   * The texts of the page in another language: any part of `ENGLISH_TEXTS`, by the same keys.
   * @default English
   */
  readonly texts?: ConsoleTexts | undefined;
  /**
   * The language of the page, such as `de` or `pt-BR`. Numbers, times, plurals and the order of
   * names follow it. @default 'en'
   */
  readonly language?: string | undefined;
  /** The direction of the page. @default that of the language */
  readonly direction?: 'ltr' | 'rtl' | undefined;
}

/** The console on the Fetch standard: a `Request` in, a `Response` out. */
export interface TokenConsole {
  /** Answers the page, its files, and 404 for anything else. */
  (request: Request): Response;
  /** The path of the page. */
  readonly basePath: string;
}

// Text cannot become code or markup.
const { file, immutable } = pageFiles(
  ["require-trusted-types-for 'script'", "trusted-types 'none'"],
  {
    'cross-origin-opener-policy': 'same-origin',
  },
);

/**
 * Serves a page on which people see, make, narrow, rotate and revoke their tokens.
 *
 * The page has no rights of its own. It calls the token service at `api` with the session of your
 * application, or asks for a user name and a password and keeps them in memory only. Loading the
 * page therefore needs no authentication.
 *
 * @throws {TokenError} `invalid_options`
 * @example
 * const page = tokenConsole({ basePath: '/console', api: '/auth' });
 * app.use('/console', toNodeListener(page)); // Express
 */
export function tokenConsole(options: TokenConsoleOptions): TokenConsole {
  return consoleOf(options);
}

/**
 * {@link tokenConsole} of a service that answers the calls of its catalog itself, as an example.
 *
 * @param example the path below which it answers them
 */
export function consoleOf(options: TokenConsoleOptions, example?: string): TokenConsole {
  const given = checkOptions<TokenConsoleOptions>(schema(), options);
  return Object.assign(publicHandler(answersOf(given, example)), { basePath: given.basePath });
}

function answersOf(
  given: TokenConsoleOptions,
  example: string | undefined,
): (request: HttpRequest) => WholeResponse {
  const { basePath } = given;
  const assets = [...pageAssets(), ...textsAsset(given.texts)];
  const data = example === undefined ? '' : ` data-example="${pathFrom(basePath, example)}"`;
  const pageWith = (files: string) => file(pageText(given, { assets, files, data }), 'text/html');
  const answers = new Map<string, PublicFile>([
    // A browser takes the last part of an address without a slash for a file, not for a folder.
    ['', pageWith(basePath.slice(basePath.lastIndexOf('/') + 1))],
    ['/', pageWith('.')],
    // The hash in their names changes with their content, so browsers may keep them forever.
    ...assets.map(({ name, type, text }): [string, PublicFile] => [
      `/${name}`,
      immutable(text, type),
    ]),
  ]);
  const cutOff = pageWith(basePath);
  return (request) => {
    const { pathname } = request.url;
    const hasBasePath = pathname === basePath || pathname.startsWith(`${basePath}/`);
    if (hasBasePath) return respond(request, answers.get(pathname.slice(basePath.length)));
    // A router may have cut off the base path, and with it the slash at the end.
    return respond(request, pathname === '/' ? cutOff : answers.get(pathname));
  };
}

function respond(request: HttpRequest, found: PublicFile | undefined): WholeResponse {
  const { method } = request;
  if (found === undefined) return refuse(404, 'There is nothing at this address.\n');
  if (method === 'GET' || method === 'HEAD') return found(request);
  return refuse(405, 'This address takes GET and HEAD.\n', { allow: 'GET, HEAD' });
}

function refuse(
  status: number,
  body: string,
  more: Readonly<Record<string, string>> = {},
): WholeResponse {
  const headers = { ...COMMON_HEADERS, 'content-type': 'text/plain; charset=utf-8', ...more };
  return { status, headers, body };
}

/** A translation as a file of the page. Like the others, it has a hash in its name. */
function textsAsset(texts: ConsoleTexts | undefined): Asset[] {
  if (texts === undefined) return [];
  const text = JSON.stringify(texts);
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 8).toUpperCase();
  return [{ name: `texts-${hash}.json`, type: 'application/json', text }];
}

/** The relative path from a folder to another path: `../auth` from `/console` to `/auth`. */
function pathFrom(folder: string, path: string): string {
  const from = folder.split('/').slice(1);
  const to = path.split('/').slice(1);
  const shared = from.findIndex((name, place) => name !== to[place]);
  const up = shared === -1 ? 0 : from.length - shared;
  return [...Array(up).fill('..'), ...to.slice(from.length - up)].join('/') || '.';
}

interface PageParts {
  readonly assets: readonly Asset[];
  /** The relative path from the page to the folder of its files. */
  readonly files: string;
  /** More attributes of the page. */
  readonly data: string;
}

function pageText(options: TokenConsoleOptions, { assets, files, data }: PageParts): string {
  const { basePath, api, brand = '', texts = {}, language = 'en' } = options;
  const { title, needsScript } = { ...ENGLISH_TEXTS.shell, ...texts.shell, ...titleOf(options) };
  const { direction = directionOf(language) } = options;
  const addressOf = (wanted: Asset['type']) =>
    assets.filter(({ type }) => type === wanted).map(({ name }) => `${files}/${name}`);
  const [textsAddress] = addressOf('application/json');
  const styles = addressOf('text/css').map((href) => `<link rel="stylesheet" href="${href}">`);
  const scripts = addressOf('text/javascript').map(
    (src) => `<script type="module" src="${src}"></script>`,
  );
  return `<!doctype html>
<html lang="${escaped(language)}" dir="${direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(title)}</title>
<link rel="icon" href="${iconOf(brand || title)}">
${[...styles, ...scripts].join('\n')}
</head>
<body>
<div id="console" data-api="${escaped(pathFrom(basePath, api))}" data-title="${escaped(title)}" data-brand="${escaped(brand)}"${textsAddress === undefined ? '' : ` data-texts="${textsAddress}"`}${data}></div>
<noscript>${escaped(needsScript)}</noscript>
</body>
</html>
`;
}

/** The icon of the tab: the first letter on the color of the buttons. */
function iconOf(name: string): string {
  const [letter] = new Intl.Segmenter().segment(name);
  const text = escaped(letter?.segment.toUpperCase().toWellFormed() ?? '');
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="9" fill="#4a3fcf"/><text x="16" y="23" text-anchor="middle" font-family="sans-serif" font-weight="700" font-size="20" fill="#fff">${text}</text></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

function titleOf({ title }: TokenConsoleOptions): { readonly title?: string } {
  return title === undefined ? {} : { title };
}

function escaped(text: string): string {
  const entities: Readonly<Record<string, string>> = {
    '&': 'amp',
    '<': 'lt',
    '>': 'gt',
    '"': 'quot',
  };
  return text.replace(/[&<>"]/g, (character) => `&${entities[character]};`);
}

const label = (name: string) =>
  z.optional(
    z
      .string({ error: `${name} must be a text of 1 to 100 characters` })
      .check(z.minLength(1, { error: `${name} must be a text of 1 to 100 characters` }))
      .check(z.maxLength(100, { error: `${name} must be a text of 1 to 100 characters` })),
  );

const schema = once(() =>
  strict({
    basePath: z.string({ error: 'basePath must be a path such as "/console"' }).check(
      z.regex(/^(?:\/[A-Za-z0-9\-._~]+)+$/, {
        error: 'basePath must begin with "/" and not end with one, such as "/console"',
      }),
    ),
    api: z.string({ error: 'api must be the path of the token service, such as "/auth"' }).check(
      z.regex(/^\/?$|^(?:\/[A-Za-z0-9\-._~]+)+$/, {
        error: 'api must begin with "/" and not end with one, such as "/auth"; "/" is the root',
      }),
    ),
    title: label('title'),
    brand: label('brand'),
    texts: z.optional(translation()),
    language: z.optional(
      z.custom<string>(isLanguage, {
        error: 'language must be a language tag such as "de" or "pt-BR"',
      }),
    ),
    direction: z.optional(z.enum(['ltr', 'rtl'], { error: 'direction must be "ltr" or "rtl"' })),
  }),
);

function isLanguage(value: unknown): boolean {
  try {
    return typeof value === 'string' && Intl.getCanonicalLocales(value).length === 1;
  } catch {
    return false;
  }
}

/** Scripts in use that run from right to left. */
const RIGHT_TO_LEFT = ['Adlm', 'Arab', 'Hebr', 'Mand', 'Nkoo', 'Rohg', 'Samr', 'Syrc', 'Thaa'];

/**
 * The direction in which a language is written, by its usual script or the one that its tag names.
 */
function directionOf(language: string): 'ltr' | 'rtl' {
  const { script = '' } = new Intl.Locale(language).maximize();
  return RIGHT_TO_LEFT.includes(script) ? 'rtl' : 'ltr';
}
