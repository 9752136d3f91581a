import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { TokenError } from '../errors.ts';
import { type Answer, COMMON_HEADERS } from './answers.ts';

/** Nothing but our own files, no inline script or style, in no frame, and no form is sent. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

const SCRIPT = 'swagger-ui-bundle.js';
const STYLE = 'swagger-ui.css';

/**
 * Only shows: nothing is called from here, so no credentials are asked for, and none are kept. All
 * addresses are relative to the page, which may be mounted anywhere.
 */
const START = `window.ui = SwaggerUIBundle({
  url: 'openapi.json',
  dom_id: '#reference',
  deepLinking: false,
  displayOperationId: false,
  persistAuthorization: false,
  queryConfigEnabled: false,
  supportedSubmitMethods: [],
  validatorUrl: null,
  plugins: [
    () => ({
      wrapComponents: {
        authorizeBtn: () => () => null,
        authorizeOperationBtn: () => () => null,
      },
    }),
  ],
});
`;

/** Responses here have no links, and on a narrow screen there is no room for a column of none. */
const LAYOUT = `body { margin: 0; }
.swagger-ui .response-col_links { display: none; }
`;

const PAGE = (version: string) => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Token service</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/${STYLE}?${version}">
<link rel="stylesheet" href="docs/layout.css?${version}">
<script src="docs/${SCRIPT}?${version}" defer></script>
<script src="docs/start.js?${version}" defer></script>
</head>
<body>
<main id="reference"></main>
<noscript>This page needs JavaScript. The description itself is <a href="openapi.json">openapi.json</a>.</noscript>
</body>
</html>
`;

/**
 * The reference page and its files, by their paths: these, and no others.
 *
 * @throws {TokenError} `invalid_options` where `swagger-ui-dist` is not installed
 */
export function referencePage(): ReadonlyMap<string, () => Answer> {
  const script = read(SCRIPT);
  const style = read(STYLE);
  const hash = createHash('sha256');
  for (const content of [script, style, START, LAYOUT]) hash.update(content);
  const page = PAGE(hash.digest('hex').slice(0, 16));
  // Their addresses name what is in them, so that they need never be asked for again.
  const asset = (bytes: string | Buffer<ArrayBuffer>, type: string) =>
    file(bytes, `${type}; charset=utf-8`, 'public, max-age=31536000, immutable');
  return new Map([
    ['/docs', file(page, 'text/html; charset=utf-8', 'no-store')],
    [`/docs/${SCRIPT}`, asset(script, 'text/javascript')],
    [`/docs/${STYLE}`, asset(style, 'text/css')],
    ['/docs/layout.css', asset(LAYOUT, 'text/css')],
    ['/docs/start.js', asset(START, 'text/javascript')],
  ]);
}

function file(body: string | Buffer<ArrayBuffer>, type: string, caching: string): () => Answer {
  const headers = {
    ...COMMON_HEADERS,
    'content-type': type,
    'cache-control': caching,
    'content-security-policy': POLICY,
  };
  return () => ({ status: 200, headers, body });
}

/** An optional package of the host's: looked for only when the page is asked for. */
function read(name: string): Buffer<ArrayBuffer> {
  try {
    const { resolve } = createRequire(import.meta.url);
    return readFileSync(resolve(`swagger-ui-dist/${name}`));
  } catch {
    throw new TokenError(
      'invalid_options',
      'docs needs the package swagger-ui-dist: npm install swagger-ui-dist',
    );
  }
}
