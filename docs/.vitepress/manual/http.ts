// The page about calls over HTTP, from the OpenAPI document that the service answers with.

import { Sessions } from '../../../src/app/server/sessions.ts';
import { tokenHandler } from '../../../src/http/index.ts';
import { generateKey, MemoryTokenStore, TokenService } from '../../../src/index.ts';
import { CODES } from '../error-links.ts';
import { block, opening, safe, sentence, tableOf } from './text.ts';

/** The parts of an OpenAPI document that this page shows. */
interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
}
interface Parameter {
  readonly $ref?: string;
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Schema;
}
interface Content {
  readonly schema?: Schema;
  readonly example?: unknown;
}
interface Answer {
  readonly description: string;
  readonly headers?: Readonly<Record<string, unknown>>;
  readonly content?: Readonly<Record<string, Content>>;
}
interface Operation {
  readonly summary: string;
  readonly description?: string;
  readonly security?: readonly Readonly<Record<string, unknown>>[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly required?: boolean;
    readonly content: Readonly<Record<string, Content>>;
  };
  readonly responses: Readonly<Record<string, Answer>>;
}
interface Document {
  readonly info: { readonly description: string };
  readonly paths: Readonly<
    Record<string, Readonly<Record<string, Operation>> & { readonly parameters?: never }>
  >;
  readonly components: {
    readonly schemas: Readonly<Record<string, Schema>>;
    readonly parameters: Readonly<Record<string, Parameter>>;
    readonly headers: Readonly<Record<string, { readonly description: string }>>;
  };
}

const METHODS = ['get', 'post', 'put', 'patch', 'delete'];

const LEAD = `\`tokenwright serve\` and \`tokenHandler\` answer these calls. Paths are relative to where the service is mounted. The running service describes itself at \`GET /openapi.json\`, for generators of clients.

Send credentials of an account as HTTP Basic, and bodies as JSON. In your own application, a [session](../guides/console.md#in-your-application) can take the place of the credentials. \`curl\` does both:

\`\`\`bash
curl -u 'ada:correct-horse' -H 'Content-Type: application/json' \\
  -d '{"scopes":["GET:shop.example/orders"],"ttl":3600}' http://127.0.0.1:8787/token
\`\`\`

The [guide to the service](../guides/run-the-service.md#over-http) explains lists, pages and versions in context.`;

/** The document of a service with everything turned on. */
async function document(): Promise<Document> {
  const store = new MemoryTokenStore();
  const keys = [generateKey()];
  const tokens = new TokenService({ store, keys, prefix: 'tw' });
  const handler = tokenHandler({
    tokens,
    authenticate: () => 'ada',
    session: new Sessions({ leases: store.leases }).of(keys, []),
    introspection: { authenticate: () => 'shop' },
    revocation: true,
    derivation: true,
    oauth: { issuer: 'https://auth.example', exchange: true },
  });
  const response = await handler(new Request('http://localhost/openapi.json'));
  return (await response.json()) as Document;
}

export async function httpPage(): Promise<string> {
  return pageOf(await document());
}

function pageOf(document: Document): string {
  const { components, info } = document;
  const calls = Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.flatMap((method) => {
      const operation = item[method];
      const shared = (item.parameters ?? []) as readonly Parameter[];
      return operation === undefined
        ? []
        : [{ call: `${method.toUpperCase()} ${path}`, operation, shared }];
    }),
  );
  const named = (schema: Schema | undefined): Schema =>
    schema?.$ref === undefined
      ? (schema ?? {})
      : (components.schemas[nameOf(schema.$ref)] ?? schema);

  const sectionOf = ({ call, operation, shared }: (typeof calls)[number]): string[] => {
    const parameters = [...shared, ...(operation.parameters ?? [])].map((each) =>
      each.$ref === undefined ? each : (components.parameters[nameOf(each.$ref)] as Parameter),
    );
    return [
      `## ${call.replace(/[{}]/g, '\\$&')} {#${anchorOf(call)}}`,
      '',
      [sentence(operation.summary), operation.description ?? ''].join(' ').trim(),
      '',
      credentialsOf(operation),
      '',
      ...section('Parameters', parameters.length > 0 && parameterTable(parameters)),
      ...bodyOf(operation, named),
      ...answerOf(operation, named, components.headers),
      ...section('Errors', errorTable(operation)),
    ];
  };

  return [
    opening(
      'HTTP API',
      'The HTTP reference: every call of the token service, with its parameters, bodies, answers and errors.',
      'docs:manual',
    ),
    LEAD,
    '',
    safe(info.description),
    '',
    tableOf(
      ['call', 'what it does'],
      calls.map(({ call, operation }) => [
        `[\`${call}\`](#${anchorOf(call)})`,
        sentence(operation.summary),
      ]),
    ),
    '',
    ...calls.flatMap(sectionOf),
    '## A token',
    '',
    'The members of a token in answers.',
    '',
    memberTable(components.schemas['Token'] ?? {}),
    '',
    '## A failure',
    '',
    'The members of every answer that is not a success. Calls of `/introspect`, `/revoke` and `/oauth/token` answer with `error` and `error_description` of OAuth instead.',
    '',
    memberTable(components.schemas['Failure'] ?? {}),
    '',
  ].join('\n');
}

function section(title: string, content: string | false): string[] {
  return content === false ? [] : [`### ${title}`, '', content, ''];
}

function credentialsOf({ security }: Operation): string {
  if (security === undefined) return 'Needs the Basic credentials of an account.';
  if (security.length === 0) return 'Needs no credentials.';
  const [[kind] = []] = security.map(Object.keys);
  return KINDS[kind ?? ''] ?? 'Needs the Basic credentials of a resource server.';
}

const KINDS: Readonly<Record<string, string>> = {
  bearer: 'Needs the value of a token, as a Bearer token.',
  account: 'Needs the Basic credentials of an account, and the header `x-tokenwright`.',
  session:
    'Needs the cookie of the session. To change something, it needs the header `x-tokenwright`.',
};

function parameterTable(parameters: readonly Parameter[]): string {
  const rows = parameters.map(({ name, in: place, required, schema, description = '' }) => [
    `\`${name}\``,
    place,
    required === true ? 'yes' : 'no',
    typeOf(schema),
    safe(description),
  ]);
  return tableOf(['name', 'in', 'required', 'type', 'meaning'], rows);
}

function bodyOf({ requestBody }: Operation, named: (schema?: Schema) => Schema): string[] {
  const [type, content] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  if (type === undefined || content === undefined) return [];
  const optional = requestBody?.required === true ? '' : ', optional';
  const example = content.example;
  return [
    '### Body',
    '',
    `\`${type}\`${optional}:`,
    '',
    memberTable(named(content.schema)),
    '',
    ...(example === undefined ? [] : [block('json', asJson(example)), '']),
  ];
}

function answerOf(
  { responses }: Operation,
  named: (schema?: Schema) => Schema,
  headers: Document['components']['headers'],
): string[] {
  const { description = '', content = {}, headers: own = {} } = responses['200'] ?? {};
  const [body] = Object.values(content);
  const sent = Object.keys(own).map(
    (name) => `\`${name}\`: ${sentence(safe(headers[name]?.description ?? ''))}`,
  );
  const members = body?.example === undefined ? named(body?.schema).properties : undefined;
  return [
    '### Answer',
    '',
    `Status 200. ${safe(description)}${sent.length > 0 ? ` Header ${sent.join(' ')}` : ''}`,
    '',
    ...(members === undefined ? [] : [memberTable(named(body?.schema)), '']),
    ...(body?.example === undefined ? [] : [block('json', asJson(body.example)), '']),
  ];
}

function errorTable({ responses }: Operation): string {
  const rows = Object.entries(responses)
    .filter(([status]) => status !== '200')
    .flatMap(([status, { description }]) =>
      description.split('\n\n').map((line) => {
        const [, code = '', meaning = ''] = /^`(\w+)`: (.*)$/s.exec(line) ?? [];
        return [status, linked(code), safe(meaning)];
      }),
    );
  return tableOf(['status', 'code', 'when'], rows);
}

/** Names of OAuth have no page of their own. */
function linked(code: string): string {
  return CODES.has(code) ? `[\`${code}\`](../errors.md#${code})` : `\`${code}\``;
}

function memberTable({ properties = {}, required = [] }: Schema): string {
  const rows = Object.entries(properties).map(([name, schema]) => [
    `\`${name}\``,
    required.includes(name) ? 'yes' : 'no',
    typeOf(schema),
    safe(schema.description ?? ''),
  ]);
  return tableOf(['member', 'required', 'type', 'meaning'], rows);
}

/** A type with its bounds, in words. */
function typeOf(schema: Schema): string {
  const { $ref, anyOf, enum: values, items, type } = schema;
  if ($ref !== undefined) return nameOf($ref).toLowerCase();
  if ('const' in schema) return `\`${JSON.stringify(schema.const)}\``;
  if (values !== undefined) return values.map((value) => `\`${value}\``).join(', ');
  if (anyOf !== undefined) return anyOf.map(typeOf).join(' or ');
  const range = rangeOf(schema);
  if (items !== undefined) return `list of ${range}${typeOf(items)}${range === '' ? '' : 's'}`;
  const name = [type ?? 'any'].flat().join(' or ');
  return range === '' ? name : `${name}, ${range.trim()}`;
}

function rangeOf(schema: Schema): string {
  const least = schema.minimum ?? schema.minItems ?? schema.minLength;
  const most = schema.maximum ?? schema.maxItems ?? schema.maxLength;
  const unit = schema.maxLength === undefined ? '' : ' characters';
  if (most === undefined || most === Number.MAX_SAFE_INTEGER) {
    return least === undefined ? '' : `${least}${unit} or more `;
  }
  return `${least ?? 0} to ${most}${unit} `;
}

function nameOf(reference: string): string {
  return reference.slice(reference.lastIndexOf('/') + 1);
}

function anchorOf(call: string): string {
  return call
    .toLowerCase()
    .replace(/[^a-z]+/g, '-')
    .replace(/-$/, '');
}

function asJson(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
