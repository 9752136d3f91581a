import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { TokenError } from '../../errors.ts';
import { type PublicFile, pageFiles } from '../public-file.ts';

// Swagger UI asks for this one policy, and logs an error without it.
const { file, immutable } = pageFiles(['trusted-types dompurify']);

const SCRIPT = 'swagger-ui-bundle.js';
const STYLE = 'swagger-ui.css';

/**
 * The page only shows the document, light or dark as the reader prefers. Swagger UI leaves lists of
 * choices without names for screen readers, so they get one when they appear. The page makes no calls, so
 * it neither asks for credentials nor stores any. All addresses are relative, since the page may be mounted
 * anywhere.
 */
const START_SCRIPT = `const dark = matchMedia('(prefers-color-scheme: dark)');
const follow = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
dark.addEventListener('change', follow);
follow();
new MutationObserver(() => {
  for (const list of document.querySelectorAll('select:not([aria-label])')) {
    list.setAttribute('aria-label', list.id === 'servers' ? 'Server' : 'Example or media type');
  }
}).observe(document.documentElement, { childList: true, subtree: true });
window.ui = SwaggerUIBundle({
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

/**
 * Hides the column of links, which is always empty, and the end of the regular expression of scopes,
 * which is for programs. Raises contrasts that are below 4.5.
 */
const STYLES = `:root { color-scheme: light; }
:root.dark-mode { color-scheme: dark; }
body { margin: 0; }
.swagger-ui .response-col_links { display: none; }
.swagger-ui .json-schema-2020-12__constraint { display: inline-block; max-width: 40ch; overflow: hidden;
  text-overflow: ellipsis; white-space: nowrap; vertical-align: bottom;
  background: #24292f !important; color: #fff !important; }
.swagger-ui .json-schema-2020-12-expand-deep-button { color: #24292f; }
.dark-mode .swagger-ui .json-schema-2020-12-expand-deep-button { color: #e4e6e6; }
.swagger-ui .info .title small, .swagger-ui .info .title small.version-stamp { background: #3b4151; }
.swagger-ui .opblock .opblock-summary-method { background: #24292f !important; color: #fff !important; }
.swagger-ui .info .url, .swagger-ui .info a { color: #0550ae; }
.dark-mode .swagger-ui .info .url, .dark-mode .swagger-ui .info a { color: #79c0ff; }
.dark-mode .swagger-ui .header-col { color: #e4e6e6; }
.swagger-ui .microlight span { color: #fff !important; }
.swagger-ui .highlight-code .microlight, .swagger-ui .microlight { background: #1b1f24; }
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
 * The docs page and all its files, by their paths.
 *
 * @throws {TokenError} `invalid_options` if `swagger-ui-dist` is not installed
 */
export function docsPage(): ReadonlyMap<string, PublicFile> {
  const script = readAsset(SCRIPT);
  const style = readAsset(STYLE);
  const hash = createHash('sha256');
  for (const content of [script, style, START_SCRIPT, STYLES]) hash.update(content);
  const page = PAGE(hash.digest('hex').slice(0, 16));
  return new Map([
    ['/docs', file(page, 'text/html')],
    [`/docs/${SCRIPT}`, immutable(script, 'text/javascript')],
    [`/docs/${STYLE}`, immutable(style, 'text/css')],
    ['/docs/layout.css', immutable(STYLES, 'text/css')],
    ['/docs/start.js', immutable(START_SCRIPT, 'text/javascript')],
  ]);
}

/** The package is optional: the host installs it for `docs` alone. Versions before 5 cannot read OpenAPI 3.1. */
function readAsset(name: string): Buffer<ArrayBuffer> {
  try {
    const { resolve } = createRequire(import.meta.url);
    const { version } = JSON.parse(readFileSync(resolve('swagger-ui-dist/package.json'), 'utf8'));
    if (Number.parseInt(version, 10) >= 5) return readFileSync(resolve(`swagger-ui-dist/${name}`));
  } catch {}
  throw new TokenError(
    'invalid_options',
    'docs needs the package swagger-ui-dist, 5 or later: npm install swagger-ui-dist',
  );
}
