// docs/evidence/growth.md and its pictures, made of what growth.ts has measured; and what is computed from it.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Range } from './measure.ts';
import { digits, grouped, putInto, ROOT, table, timeText } from './page.ts';
import { plotSvg } from './plot.ts';

const PAGE = 'docs/evidence/growth.md';

interface Point extends Range {
  readonly size: number;
}

/** In microseconds a call, unless its name says otherwise. */
export interface Curve {
  readonly name: string;
  readonly points: readonly Point[];
}

export interface Part {
  readonly date: string;
  /** What it was measured on. */
  readonly machine: string;
  readonly curves: readonly Curve[];
  /** Single numbers, by name. */
  readonly facts: Readonly<Record<string, number>>;
}

export type PartName = 'scopes' | 'accounts' | 'totals' | 'nodes' | 'month';
export type Measured = Pick<Part, 'curves' | 'facts'>;
export type Figures = { [name in PartName]?: Part };

/** Numbers of nodes, which `facts` and curves are named by. */
export const NODES = [1, 2, 4, 8];
export const MAX_STALE_MS = 1000;
export const CACHED = `maxStaleMs ${MAX_STALE_MS}`;

/** What a month is assumed to be. */
export const MONTH = {
  /** That are active. */
  tokens: 1_000_000,
  /** Of each token, evenly over the month and over its scopes. */
  uses: 1000,
  /** So many of the tokens are replaced each month. */
  renewed: 0.2,
  /** How long ended tokens are kept, in months: `serve` keeps them for 90 days. */
  kept: 3,
  nodes: 2,
  maxStaleMs: 10_000,
  seconds: 30 * 86_400,
};
export const MONTH_ROWS = MONTH.tokens * (1 + MONTH.renewed * MONTH.kept);
/** A second. */
export const MONTH_VERIFIES = (MONTH.tokens * MONTH.uses) / MONTH.seconds;

/** Puts all that was measured between the marks of the page. */
export function writePage(figures: Figures): void {
  for (const [name, block] of Object.entries(BLOCKS) as [PartName, (part: Part) => string[]][]) {
    const part = figures[name];
    if (part !== undefined) putInto(PAGE, name, [...block(part), dated(part, name)]);
  }
  if (figures.totals !== undefined && figures.nodes !== undefined) {
    putInto(PAGE, 'sizing', sizing(figures.totals, figures.nodes));
  }
  const machines = [
    ...new Set(Object.values(figures).map(({ machine }) => `Measured on ${machine}.`)),
  ];
  putInto(PAGE, 'machine', machines);
}

function shortNumber(value: number): string {
  if (value >= 1_000_000) return `${value / 1_000_000} M`;
  return value >= 1000 ? `${value / 1000} k` : String(value);
}

/** Curves as rows: the median, and below it where eight of ten rounds lie. */
function curveTable(
  head: string,
  curves: readonly Curve[],
  text: (value: number) => string,
): string {
  const sizes = [...new Set(curves.flatMap(({ points }) => points.map(({ size }) => size)))];
  sizes.sort((a, b) => a - b);
  const rows = curves.map(({ name, points }) => [
    name,
    exponentOf(points).toFixed(2),
    ...sizes.map((size) => {
      const point = points.find((one) => one.size === size);
      if (point === undefined) return '';
      return `${text(point.median)}<br><small>${rangeText(point, text)}</small>`;
    }),
  ]);
  return table([[head, 'exponent', ...sizes.map(grouped)], ...rows]);
}

/** `1.2 – 1.4 µs`; a unit that both have stands once. */
function rangeText({ low, high }: Point, text: (value: number) => string): string {
  const [from, to] = [text(low), text(high)];
  const unit = /\D+$/.exec(to)?.[0] ?? '';
  return `${from.endsWith(unit) ? from.slice(0, from.length - unit.length) : from}\u00a0–\u00a0${to}`;
}

/** 0 when the size does not matter, 1 when ten times the size costs ten times as much. */
function exponentOf(points: readonly Point[]): number {
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined || first === last) return 0;
  return Math.log(last.median / first.median) / Math.log(last.size / first.size);
}

interface Picture {
  readonly name: string;
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  readonly curves: readonly Curve[];
  readonly text: (value: number) => string;
  /** Beside the axis; `text` when absent. */
  readonly tickText?: (value: number) => string;
  readonly xTicks?: readonly number[];
}

/** Writes it, and gives the line that shows it. */
function draw({ name, title, xLabel, yLabel, curves, text, tickText, xTicks }: Picture): string {
  const told = curves.map(({ name: curve, points }) => {
    const values = points.map(({ size, median }) => `${text(median)} at ${shortNumber(size)}`);
    return `${curve}: ${values.join(', ')}`;
  });
  const svg = plotSvg({
    name,
    title,
    description: `${yLabel}, by ${xLabel}; both axes are logarithmic. ${told.join('. ')}.`,
    xLabel,
    yLabel,
    xText: shortNumber,
    yText: tickText ?? text,
    lines: curves.map(({ name: curve, points }) => ({
      name: curve,
      points: points.map(({ size, median }) => ({ x: size, y: median })),
    })),
    ...(xTicks !== undefined && { xTicks }),
  });
  writeFileSync(join(ROOT, `docs/pictures/${name}.svg`), svg);
  return `![${title}](../pictures/${name}.svg)`;
}

const perCall = 'time of a call';
const rateText = (rate: number) => `${grouped(Math.round(rate))}/s`;
const percentText = (share: number) => `${(share * 100).toFixed(share > 0.99 ? 2 : 0)} %`;

function dated({ date, curves }: Part, name: PartName): string {
  const largest = curves[0]?.points.at(-1)?.size ?? 0;
  const rows = name === 'totals' ? `ROWS=${largest} ` : '';
  return `Measured on ${date} by \`${rows}npm run bench:growth -- ${name}\`.`;
}

const NODE_CPU = {
  fact: 'node CPU us a verify',
  text: timeText,
  label: 'CPU of the nodes a verify',
};
const NODE_FACTS = [
  { ...NODE_CPU, mode: 'no cache' },
  {
    fact: 'server CPU us a read',
    mode: 'no cache',
    text: timeText,
    label: 'CPU of the database a verify',
  },
  { ...NODE_CPU, mode: CACHED },
  { fact: 'hit share', mode: CACHED, text: percentText, label: 'share of hits' },
];

const BLOCKS: Readonly<Record<PartName, (part: Part) => string[]>> = {
  scopes: ({ curves }) => [
    draw({
      name: 'growth-scopes',
      title: 'Cost by the scopes of a token',
      xLabel: 'scopes of a token',
      yLabel: perCall,
      curves,
      text: timeText,
    }),
    curveTable('scopes', curves, timeText),
  ],
  accounts: ({ curves }) =>
    ['SQLite', 'memory'].flatMap((store) => {
      const own = curves
        .filter(({ name }) => name.endsWith(store))
        .map(({ name, points }) => ({ name: name.slice(0, -store.length - 2), points }));
      const where = store === 'SQLite' ? 'on SQLite' : 'in the memory store';
      return [
        draw({
          name: `growth-accounts-${store.toLowerCase()}`,
          title: `Cost by the tokens of an account, ${where}`,
          xLabel: 'tokens of the account',
          yLabel: perCall,
          curves: own,
          text: timeText,
        }),
        curveTable(`tokens, ${where}`, own, timeText),
      ];
    }),
  totals: ({ curves, facts }) => {
    const sizes = curves[0]?.points.map(({ size }) => size) ?? [];
    const bytes = (name: string, size: number) => {
      const value = facts[`${name} bytes ${size}`] ?? 0;
      return `${grouped(Math.round(value / size))}<br><small>${digits(value / 1e6)}\u00a0MB</small>`;
    };
    const kinds = ['SQLite', 'PostgreSQL table', 'PostgreSQL index', 'PostgreSQL id index'];
    return [
      draw({
        name: 'growth-totals',
        title: 'Cost by the tokens in all',
        xLabel: 'tokens in the table',
        yLabel: perCall,
        curves: curves.filter(({ name }) => !name.startsWith('verify') || name.endsWith('p50')),
        text: timeText,
      }),
      curveTable('tokens in all', curves, timeText),
      'Bytes a token, and the whole:',
      table([
        ['bytes a token', ...sizes.map(grouped)],
        ...kinds.map((kind) => [
          kind === 'SQLite' ? 'SQLite, the file' : kind,
          ...sizes.map((size) => bytes(kind, size)),
        ]),
      ]),
    ];
  },
  nodes: ({ curves, facts }) => [
    draw({
      name: 'growth-nodes',
      title: 'Verifies a second by the number of nodes',
      xLabel: 'nodes',
      yLabel: 'verifies a second, all nodes together',
      curves,
      text: rateText,
      tickText: (rate) => `${shortNumber(rate)}/s`,
      xTicks: NODES,
    }),
    curveTable('nodes', curves, rateText),
    table([
      ['what a verify took', ...NODES.map(String)],
      ...NODE_FACTS.map(({ fact, mode, text, label }) => [
        `${label}, ${mode}`,
        ...NODES.map((count) => text(facts[`${fact}, ${mode} ${count}`] ?? 0)),
      ]),
    ]),
  ],
  month: ({ facts }) => {
    const row = (what: string, fact: string, text: (value: number) => string, how: string) => [
      what,
      ...['SQLite', 'PostgreSQL'].map((engine) => {
        const value = facts[`${fact}, ${engine}`];
        return value === undefined ? '' : text(value);
      }),
      how,
    ];
    const size = (bytes: number) => `${digits(bytes / 1e9)}\u00a0GB`;
    const rate = (value: number) => `${digits(value)}/s`;
    const megabytes = (bytes: number) => `${digits(bytes / 1e6)}\u00a0MB`;
    const cores = (share: number) => `${digits(share * 100)}\u00a0%`;
    const seconds = (share: number) => `${grouped(Math.round(share * MONTH.seconds))}\u00a0s`;
    return [
      table([
        ['a million tokens for a month', 'SQLite', 'PostgreSQL', 'how'],
        row('tokens with their indexes', 'tokens bytes', size, 'measured'),
        row('their usage', 'usage bytes', size, 'measured'),
        row('verifies', 'verifies', rate, 'computed, and sent'),
        row('statements that read tokens', 'reads', rate, 'measured'),
        row('statements that write usage', 'usage', rate, 'measured'),
        row('statements that look for changes', 'changes', rate, 'measured'),
        row('all other statements', 'other', rate, 'measured'),
        row('memory of a new node', 'new memory', megabytes, 'measured'),
        row('memory of a node with a full cache', 'memory', megabytes, 'measured'),
        row('CPU of all nodes, of one core', 'node CPU', cores, 'measured'),
        row('CPU of all nodes in a month', 'node CPU', seconds, 'computed'),
        row('CPU of the database, of one core', 'server CPU', cores, 'measured'),
        row('CPU of the database in a month', 'server CPU', seconds, 'computed'),
      ]),
    ];
  },
};

const TOKENS_GOAL = 1e9;
const VERIFIES_GOAL = 1e5;

/** Of what a core could do, so much is used. */
const LOAD = 0.5;

/** Computed from what was measured, and says from what. */
function sizing({ curves, facts: of }: Part, { facts: at }: Part): string[] {
  const verify = curves.find(({ name }) => name === 'verify, PostgreSQL, p50')?.points ?? [];
  const largest = verify.at(-1)?.size ?? 1;
  const times = TOKENS_GOAL / largest;
  const exponent = exponentOf(verify);
  const bytesOf = (text: string, name: string) => {
    const perToken = (of[`PostgreSQL ${name} bytes ${largest}`] ?? 0) / largest;
    return [
      text,
      `${digits((perToken * TOKENS_GOAL) / 1e9)}\u00a0GB`,
      `${digits(perToken)} bytes a token at ${grouped(largest)} tokens, × 10⁹`,
    ];
  };
  const most = (fact: string, mode: string) =>
    Math.max(...NODES.map((count) => at[`${fact}, ${mode} ${count}`] ?? 0));
  const missUs = most('node CPU us a verify', 'no cache');
  const hitUs = most('node CPU us a verify', CACHED);
  const readUs = most('server CPU us a read', 'no cache');
  return [
    table([
      ['10⁹ tokens on PostgreSQL', 'size', 'computed from'],
      bytesOf('the table', 'table'),
      bytesOf('all its indexes', 'index'),
      bytesOf('the index that verify reads', 'id index'),
    ]),
    `From ${grouped(largest)} tokens to 10⁹ is ${grouped(times)} times as many. The p50 of verify on ` +
      `PostgreSQL has the exponent ${exponent.toFixed(3)}; carried on, a call takes ` +
      `${(times ** exponent).toFixed(2)} times as long, as long as what it reads is in memory.`,
    `Of a node, a verify took at most ${timeText(missUs)} of CPU without a cache and ` +
      `${timeText(hitUs)} with one; of the database, a read took at most ${timeText(readUs)} (the ` +
      'largest of each row of the table above). With a share h of hits, 10⁵ verifies a second are ' +
      '10⁵ × (1 − h) reads a second. The nodes then need ' +
      `10⁵ × (h × ${timeText(hitUs)} + (1 − h) × ${timeText(missUs)}) of CPU a second, the database ` +
      `reads × ${timeText(readUs)}; twice that many cores, to run them at half load. A node is one ` +
      'process on one core. A read that finds nothing in memory reads a page of the index and one of ' +
      'the table.',
    table([
      [
        'share of hits',
        'reads a second',
        'nodes',
        'cores of the database',
        'pages a second from disk, at most',
      ],
      ...[0, 0.5, 0.9, 0.99].map((share) => {
        const reads = Math.round(VERIFIES_GOAL * (1 - share));
        const cores = (VERIFIES_GOAL * share * hitUs + reads * missUs) / 1e6 / LOAD;
        return [
          `${share * 100} %`,
          grouped(reads),
          String(Math.ceil(cores)),
          String(Math.ceil((reads * readUs) / 1e6 / LOAD)),
          grouped(reads * 2),
        ];
      }),
    ]),
  ];
}
