// Splits the reference of an entry into pages of one area each, with an index of names on top.

/** A part of what an entry exports, by the files that define it. */
export interface Area {
  readonly name: string;
  readonly title: string;
  readonly about: string;
  readonly files: RegExp;
}

/** The last area of an entry takes what fits no other. Other entries are one page. */
export const AREAS: Readonly<Record<string, readonly Area[]>> = {
  index: [
    {
      name: 'service',
      title: 'The token service',
      about: '`TokenService`, its options, and what its methods take',
      files: /^(?:service|(?:verbs|inputs)\/.*)\.ts$/,
    },
    {
      name: 'stores',
      title: 'Stores',
      about: 'the interface of a store, and the store in memory',
      files: /^(?:ports|stores)\//,
    },
    {
      name: 'keys',
      title: 'Keys, clock and redaction',
      about: 'keys, the clock, masking of values and rules for leak scanners',
      files: /^(?:values\/.*|time\/clock)\.ts$/,
    },
    {
      name: 'tokens',
      title: 'Tokens, verdicts, events and errors',
      about: 'what the methods return, emit and throw',
      files: /./,
    },
  ],
  http: [
    {
      name: 'guard',
      title: 'The guard',
      about: '`bearerGuard`, its options and its outcome',
      files: /^http\/guard\/guard\.ts$/,
    },
    {
      name: 'middleware',
      title: 'Guards for frameworks',
      about: 'the guard as middleware for Express, Fastify, Hono, Koa, NestJS and Next.js',
      files: /^http\/guard\//,
    },
    {
      name: 'accounts',
      title: 'Accounts and wrong passwords',
      about: 'fixed accounts, password hashes and limits for failed sign-ins',
      files: /^http\/sign-in\//,
    },
    {
      name: 'node',
      title: 'Requests and responses of Node',
      about: '`toNodeListener`, `sendResponse` and safe addresses for logs',
      files: /^(?:http\/node|values)\//,
    },
    {
      name: 'handler',
      title: 'The token service over HTTP',
      about: '`tokenHandler` and its options',
      files: /./,
    },
  ],
  scope: [
    {
      name: 'sets',
      title: 'Sets of scopes and requests',
      about: '`ScopeSet`, decisions, and requests as they are read',
      files: /^scope\/(?:set|request|explain)\.ts$/,
    },
    {
      name: 'catalogs',
      title: 'Catalogs',
      about: '`ScopeCatalog`, catalogs with types, and lint',
      files: /^scope\/(?:catalog|typed|lint)\.ts$/,
    },
    {
      name: 'scopes',
      title: 'Scopes',
      about: 'how scopes are parsed and compared',
      files: /./,
    },
  ],
};

/** What an entry exports, as one long page. */
export interface Whole {
  /** `http`; the file of the page without its ending. */
  readonly page: string;
  /** `tokenwright/http`. */
  readonly address: string;
  readonly text: string;
  readonly areas: readonly Area[];
  /** The file in `src` that defines a name. */
  fileOf(name: string): string;
  /** Whether the name can be imported; other types are shown because exports are made of them. */
  isExported(name: string): boolean;
}

interface Section {
  readonly name: string;
  readonly text: string;
  readonly page: string;
}

const NOT_EXPORTED = '*A part of other types, with no export of its own.*';

/** The pages of all entries, by their file. Links between them lead to where a name is now. */
export function pagesOf(wholes: readonly Whole[]): ReadonlyMap<string, string> {
  const addresses = new Map(wholes.flatMap(addressesOf));
  return new Map(
    wholes.flatMap((whole) => {
      const sections = sectionsOf(whole).map((section) => ({
        ...section,
        text: relinked(withIds(section.text, section.name), whole.page, section.page, addresses),
      }));
      return layOut(whole, sections);
    }),
  );
}

function layOut(whole: Whole, sections: readonly Section[]): [string, string][] {
  const { page, address, areas } = whole;
  if (areas.length === 0) {
    const lead = `What \`${address}\` exports.\n\n${indexOf(sections, page)}`;
    return [[page, pageText(address, `What ${address} exports.`, lead, sections)]];
  }
  const of = ({ name }: Area) => sections.filter((section) => section.page === `${page}-${name}`);
  const parts = areas
    .filter((area) => of(area).length > 0)
    .map((area): [Area, string] => [area, `${page}-${area.name}`]);
  const lists = parts.map(
    ([area, file]) =>
      `## ${area.title}\n\n[This page](./${file}.md) has ${area.about}.\n\n${indexOf(of(area), page)}`,
  );
  const about = `What ${address} exports, by area.`;
  return [
    [page, pageText(address, about, `What \`${address}\` exports.\n\n${lists.join('\n\n')}`, [])],
    ...parts.map(([area, file]): [string, string] => [
      file,
      pageText(
        `${address}: ${area.title[0]?.toLowerCase()}${area.title.slice(1)}`,
        `${area.title}: ${area.about.replaceAll('`', '')}.`,
        `From \`${address}\`: ${area.about}.\n\n${indexOf(of(area), file)}`,
        of(area),
      ),
    ]),
  ];
}

function pageText(
  title: string,
  description: string,
  lead: string,
  sections: readonly Section[],
): string {
  // Beside the page, the names alone: what each consists of would bury them.
  const head = `---\noutline: 2\ndescription: "${description}"\n---\n\n# ${title}\n\n${lead}\n`;
  return [head, ...sections.map(({ text }) => text)].join('\n');
}

/** The names as links, each with its first sentence. */
function indexOf(sections: readonly Section[], page: string): string {
  const rows = sections.map(({ name, text, page: own }) => {
    const place = own === page ? '' : `./${own}.md`;
    return `| [\`${name}\`](${place}#${name}) | ${firstSentence(text)} |`;
  });
  return ['| name | what it is |', '| --- | --- |', ...rows].join('\n');
}

function firstSentence(text: string): string {
  const paragraph =
    text
      .replaceAll(/^```[\s\S]*?^```$/gm, '')
      .split(/\n{2,}/)
      .find((part) => /^[A-Z`[]/.test(part.trim())) ?? '';
  const plain = paragraph
    .trim()
    .replaceAll('\n', ' ')
    .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1');
  return (plain.split(/(?<=\.)\s/)[0] ?? '').replaceAll('|', '\\|');
}

/** What can be called comes first, then classes, then types, then types that are parts of others. */
function sectionsOf({ page, text, areas, fileOf, isExported }: Whole): Section[] {
  const parts = text.split(/\n(?:\*\*\*\n+)?(?=## \w)/).slice(1);
  const rank = ({ name, text: part }: Section) => {
    if (!isExported(name)) return 3;
    if (/^## [a-z]\w*\(/.test(part)) return 0;
    return part.includes('\n### Constructors\n') ? 1 : 2;
  };
  return parts
    .map((part): Section => {
      const name = bare(part.slice('## '.length));
      const area = areas.find(({ files }) => files.test(fileOf(name)));
      const body = isExported(name) ? part : part.replace('\n', `\n\n${NOT_EXPORTED}\n`);
      return { name, text: body, page: area === undefined ? page : `${page}-${area.name}` };
    })
    .sort((a, b) => rank(a) - rank(b));
}

/** Where each heading of a long page is now, by the address that the plugin gave it. */
function addressesOf(whole: Whole): [string, string][] {
  const pages = new Map(sectionsOf(whole).map(({ name, page }) => [name, page]));
  const seen = new Map<string, number>();
  let owner = '';
  return headingsOf(whole.text).flatMap(({ level, text }): [string, string][] => {
    const slug = slugOf(text);
    const count = seen.get(slug) ?? 0;
    seen.set(slug, count + 1);
    if (level === 2) owner = bare(text);
    const page = pages.get(owner);
    if (page === undefined) return [];
    const old = `${whole.page}.md#${slug}${count === 0 ? '' : `-${count}`}`;
    if (level > 2) return [[old, `${page}.md#${idOf(owner, text)}`]];
    const own = `${page}.md#${owner}`;
    return [
      [old, own],
      [`${whole.page}.md ${owner}`, own],
    ];
  });
}

/** Gives headings ids by their names, which hold however many others are alike. */
function withIds(text: string, owner: string): string {
  const seen = new Set<string>();
  return mapHeadings(text, (line, level, heading) => {
    const id = level === 2 ? owner : idOf(owner, heading);
    // Of headings such as "Returns" only the first can have the id.
    if (seen.has(id)) return line;
    seen.add(id);
    return `${line} {#${id}}`;
  });
}

function relinked(
  text: string,
  from: string,
  to: string,
  addresses: ReadonlyMap<string, string>,
): string {
  const linkTo = (address: string) =>
    address.startsWith(`${to}.md#`) ? address.slice(to.length + '.md'.length) : `./${address}`;
  const replaced = (key: string, page: string, before: string, link: string) => {
    const address = addresses.get(`${page || `${from}.md`}${key}`);
    return address === undefined ? link : `${before}](${linkTo(address)})`;
  };
  return text
    .replaceAll(
      // Of names that differ in case only, the plugin may number the anchors in another order.
      /(\[`?(\w+)`?)\]\(((?:\w+\.md)?)#[\w-]+\)/g,
      (link, before: string, name: string, page: string) =>
        replaced(` ${name}`, page, before, link),
    )
    .replaceAll(/\]\(((?:\w+\.md)?)(#[\w-]+)\)/g, (link, page: string, anchor: string) =>
      replaced(anchor, page, '', link),
    );
}

function mapHeadings(
  text: string,
  change: (line: string, level: number, heading: string) => string,
): string {
  let isCode = false;
  return text
    .split('\n')
    .map((line) => {
      if (line.startsWith('```')) isCode = !isCode;
      const [, marks = '', heading = ''] = /^(#{1,6}) (.*)$/.exec(line) ?? [];
      return isCode || marks === '' ? line : change(line, marks.length, heading);
    })
    .join('\n');
}

function headingsOf(text: string): { readonly level: number; readonly text: string }[] {
  const found: { level: number; text: string }[] = [];
  mapHeadings(text, (line, level, heading) => {
    found.push({ level, text: heading });
    return line;
  });
  return found;
}

/** `issue()` as `issue`. */
function bare(heading: string): string {
  return /^\w+/.exec(heading.replaceAll(/[`\\]/g, ''))?.[0] ?? heading;
}

function idOf(owner: string, heading: string): string {
  return `${owner}-${slugOf(heading)}`;
}

/** As the site makes an id of a heading. */
function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replaceAll(/[^\w]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
}
