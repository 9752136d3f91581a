import { invalidOptions } from '../errors.ts';

const PARSER = '@apidevtools/swagger-parser';

/** Parses JSON or YAML; `undefined` when it is neither. JSON needs no parser package. */
export async function parseText(text: string): Promise<unknown> {
  return tryParseJson(text.trimStart()) ?? (await parseYaml(text));
}

function tryParseJson(text: string): unknown {
  if (!/^[{[]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The part of the parser package that is used. */
interface Parser {
  /** The parsed document; also set when `parse` rejects. */
  readonly api: unknown;
  parse(name: string, options: object): Promise<unknown>;
}

/**
 * Parses without resolving references, reading files or fetching URLs. Rejections are ignored: the
 * parser also rejects versions, which are checked later, and fragments, which have no version.
 */
async function parseYaml(text: string): Promise<unknown> {
  const parser = await loadParser();
  const given = { order: 1, canRead: true, read: () => text };
  await parser
    .parse('document.yaml', {
      resolve: { external: false, file: false, http: false, given },
      parse: { json: false, text: false, binary: false },
    })
    .catch(() => undefined);
  return parser.api ?? undefined;
}

async function loadParser(): Promise<Parser> {
  try {
    const { default: SwaggerParser } = await import('@apidevtools/swagger-parser');
    return new SwaggerParser();
  } catch {
    throw invalidOptions(
      `what is not JSON is read as YAML, which needs the package ${PARSER}: npm install ${PARSER}`,
    );
  }
}
