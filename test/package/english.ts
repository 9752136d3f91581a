// Checks what people read for the phrases that our guide to English rules out: npm run english.
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';

const ROOT = join(import.meta.dirname, '../..');

/** A phrase, and what to write instead. */
const RULES: readonly (readonly [phrase: RegExp, instead: string])[] = [
  [/\bat once\b/, 'immediately, or concurrently'],
  [/\banew\b/, 'again'],
  [/\bwhom\b/i, 'name who or what it is'],
  [/\bof (?:ours|yours)\b/, 'our, your'],
  [/\bone and the same\b/, 'the same'],
  [/\bfor ever\b/, 'forever, or without end'],
  [/\b(?:told|tells?|hears?) of\b/, 'reports, is notified of'],
  [/\bbe had\b/, 'is available'],
  [/(?<!\b[Tt]here )\b(?:is|are) no (?!longer|more|less|later|earlier|other)/, 'is not a'],
  [/(?<!\b[Tt]here )\b(?:is|are) none(?! (?:of|other)\b)/, 'is not one'],
  [/\b(?:is|are) away\b/, 'is down, cannot be reached'],
  [/\bpass(?:es)? (?:it|memory|the cache) by\b/, 'skips'],
  [/\bmends? (?:it|them)sel(?:f|ves)\b/, 'recovers'],
  [/\bbehaviour|honour|colour|neighbour|misspelt\b/, 'American spelling'],
];

/** Also the phrases that comments may contain, but texts for users may not. */
const RULES_FOR_USERS: typeof RULES = [
  ...RULES,
  [/\b(?:is|are) told\b/, 'receives, learns'],
  [/(?:^|[.:;|] )\**Whoever\b/, 'anyone who, if you'],
  [/(?:[,;] else|(?:^|\. )Else)\b/, 'otherwise'],
];

/** Also the turns of phrase that pages are free of: correct, and nothing that an engineer would say. */
const RULES_FOR_PAGES: typeof RULES = [
  ...RULES_FOR_USERS,
  [
    /\b(?:an?|no|with) (?:[\w-]+ ){1,2}of (?:its|their|your|our) own(?= (?:and|can|for|has|in|is|or|stops|that|to|which|with)\b)|\bof (?:its|their|your|our) own(?=[,.;:)]|$)/,
    'its own file, rather than a file of its own',
  ],
  [
    /[,;(] ?also (?:if|when|where|while|after|without|with|in|by|for|those)\b/,
    'even if, including',
  ],
  [/\bthe ones? of\b|\b(?:that|those) of (?:the|an?|its|your|our|each|another)\b/, "the proxy's"],
  [/\b(?:those|ones) (?:that|which|who)\b/, 'the noun: tokens that'],
  [
    /(?<!^|[.?|] )\bwhat (?:was|were|had|it had|there was|is missing)\b/,
    'the noun: the used scopes',
  ],
  [/\b(?:go|goes|going) on\b/, 'continues, keeps working'],
  [/\bbegins? again\b/, 'starts from zero'],
  [/\bplays? no part\b/, 'is ignored'],
  [/\bneed not\b/, 'does not have to'],
  [/\bas against\b/, 'matched like, unlike'],
  [/\bhands? out\b/, 'returns, reports'],
  [/\bknows? no\b/, 'does not know'],
  [/\bany more(?= than|[.,;:)]|$)/, 'no longer'],
  [/\bfrom then on\b/, 'then'],
];

/** A relative clause that starts a sentence in place of a noun. Questions and headings may have one. */
const RELATIVE =
  /(?:^|[.;] |\| )(What (?:is|was|are|were|can|cannot|has|comes|looks|holds)\b[^.?|]*)(?:[.|]|$)/;

export interface Finding {
  readonly position: string;
  readonly phrase: string;
  readonly instead: string;
}

/** The findings in a text without line breaks. */
function findingsOf(position: string, text: string, rules = RULES_FOR_USERS): Finding[] {
  return rules.flatMap(([pattern, instead]) => {
    const [phrase] = pattern.exec(text) ?? [];
    return phrase === undefined ? [] : [{ position, phrase, instead }];
  });
}

/** The findings in the comments of a program. */
export function findingsIn(file: string, text: string): Finding[] {
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const seen = new Set<number>();
  const findings: Finding[] = [];
  const visit = (node: ts.Node): void => {
    for (const { pos, end } of [
      ...(ts.getLeadingCommentRanges(text, node.getFullStart()) ?? []),
      ...(ts.getTrailingCommentRanges(text, node.getEnd()) ?? []),
    ]) {
      if (seen.has(pos)) continue;
      seen.add(pos);
      const comment = text.slice(pos, end).replace(/\s*\n\s*(?:\*|\/\/)?\s*/g, ' ');
      findings.push(...findingsOf(positionOf(tree, pos), comment, RULES));
    }
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return findings;
}

/** The findings in the texts of a program that are sentences: messages, help and descriptions. */
export function findingsInMessages(file: string, text: string): Finding[] {
  const tree = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const findings: Finding[] = [];
  const visit = (node: ts.Node): void => {
    const message = messageOf(node);
    if (message.includes(' ')) findings.push(...findingsOf(positionOf(tree, node.pos), message));
    ts.forEachChild(node, visit);
  };
  visit(tree);
  return findings;
}

/** A literal, or a template with each of its expressions as one character. */
function messageOf(node: ts.Node): string {
  if (ts.isStringLiteral(node) || ts.isNoSubstitutionTemplateLiteral(node)) return node.text;
  if (!ts.isTemplateExpression(node)) return '';
  return node.head.text + node.templateSpans.map(({ literal }) => `…${literal.text}`).join('');
}

function positionOf(tree: ts.SourceFile, offset: number): string {
  return `${tree.fileName}:${tree.getLineAndCharacterOfPosition(offset).line + 1}`;
}

/** The findings in a page, without its code. Lines of a paragraph are read together. */
export function findingsInPage(file: string, text: string): Finding[] {
  const blank = (part: string) => part.replace(/[^\n]/g, '');
  const prose = text.replace(/^(```+)[^\n]*\n.*?^\1/gms, blank).replace(/`[^`\n]*`/g, '`…`');
  const lines = prose.split('\n');
  return lines.flatMap((line, index) => {
    // A phrase can continue on the next line of a paragraph. A phrase that is only there belongs to it.
    const next = /^(?:$|[#|>*-]|\d+\.)/.test(lines[index + 1] ?? '')
      ? ''
      : (lines[index + 1] ?? '');
    const position = `${file}:${index + 1}`;
    const bare = line.replace(/^\s*(?:[*>-]|\d+\.)\s+/, '');
    const [, relative] = line.startsWith('#') ? [] : (RELATIVE.exec(bare) ?? []);
    return [
      ...findingsOf(position, bare, RULES_FOR_PAGES),
      ...findingsOf(position, `${bare} ${next}`, RULES_FOR_PAGES).filter(
        ({ phrase }) => !bare.includes(phrase) && !next.includes(phrase),
      ),
      ...(relative === undefined
        ? []
        : [{ position, phrase: relative.slice(0, 60), instead: 'the thing itself, as a noun' }]),
    ];
  });
}

const PAGES = ['*.md', 'docs/**/*.md', 'examples/*.md', '.changeset/*.md'];
/** Generated from the sources, which are checked themselves. */
const MADE = /^docs\/(?:reference|service|\.vitepress)\/|^CHANGELOG\.md$/;

if (import.meta.main) {
  const read = (file: string) => readFileSync(join(ROOT, file), 'utf8');
  const among = (patterns: string[]) => globSync(patterns, { cwd: ROOT }).sort();
  const findings = [
    ...among(['src/**/*.ts', 'examples/**/*.*']).flatMap((file) => findingsIn(file, read(file))),
    ...among(['src/**/*.ts']).flatMap((file) => findingsInMessages(file, read(file))),
    ...among(PAGES)
      .filter((file) => !MADE.test(file))
      .flatMap((file) => findingsInPage(file, read(file))),
  ];
  for (const { position, phrase, instead } of findings) {
    console.log(`${position}: "${phrase}"; write ${instead}`);
  }
  if (findings.length > 0) process.exitCode = 1;
}
