import { pathCovers } from './algebra.ts';
import { getOrMake } from './collections.ts';
import { FIRST_SEGMENT, makeScope, type Scope, withoutMark } from './grammar.ts';
import type { ScopeLookup } from './lookup.ts';
import { type OverlapIndex, patternsOf } from './overlap.ts';
import {
  type Candidate,
  decode,
  hasTrailingSlash,
  pathTextOfRequest,
  type ReadRequest,
  type RequestPath,
  type Routes,
  segmentBits,
} from './request.ts';

/** Stands for an empty segment: no literal equals it. */
const EMPTY = '%';

/** Entries that cover one request. No service that people write has more. */
const MAX_MATCHES = 64;

/** Candidates of one request that are looked up one by one. */
const MAX_CANDIDATES = 16;

/** Finds the entries that cover segments in their loosest reading. */
export type EntrySearch = (segments: readonly string[]) => readonly Scope[];

/** A text as the loosest router compares it: percent-decoded, in lower case. */
export function fold(segment: string): string {
  return (decode(segment) ?? segment).toLowerCase();
}

/** The entries of a catalog as the loosest router compares them. */
export interface FoldedEntries {
  readonly lookup: ScopeLookup;
  readonly index: OverlapIndex;
  /** By the text of a folded entry; `undefined` if all entries are in lower case. */
  readonly originals: ReadonlyMap<string, readonly Scope[]> | undefined;
}

/** The entries with their paths in lower case, without duplicates, and the entries that they stand for. */
export function foldEntries(
  entries: readonly Scope[],
): ReadonlyMap<string, { readonly folded: Scope; readonly originals: Scope[] }> {
  const byText = new Map<string, { readonly folded: Scope; readonly originals: Scope[] }>();
  for (const entry of entries) {
    const { method, domain, path } = entry;
    const lower = path.toLowerCase();
    const folded = lower === path ? entry : makeScope(method, domain, lower);
    getOrMake(byText, folded.toString(), () => ({ folded, originals: [] })).originals.push(entry);
  }
  return byText;
}

/**
 * Finds the entries to which servers may take a request. Routers ignore case, decode percent-encoded
 * characters or not, keep or drop a slash at the end, and run the handlers of GET for HEAD. So this
 * looks for all entries that match in the loosest of these ways. It keeps those that are the most
 * specific in some way from the strictest to the loosest.
 */
export class EntryRoutes implements Routes {
  readonly #lookup: ScopeLookup;
  readonly #folded: FoldedEntries;
  /** The texts of the entries that the service writes with a slash at the end. */
  readonly #slashed: ReadonlySet<string>;
  /** Whether servers may take a request of an entry to another one too; by the texts of entries. */
  readonly #isRivaled = new Map<string, boolean>();
  readonly #isCrossed = new Map<Scope, boolean>();

  constructor(lookup: ScopeLookup, folded: FoldedEntries, slashed: ReadonlySet<string>) {
    this.#lookup = lookup;
    this.#folded = folded;
    this.#slashed = slashed;
  }

  attribute(request: ReadRequest): Scope | undefined {
    return this.#lookup.grantOf(request);
  }

  isSettled(request: ReadRequest, by: Scope): boolean {
    const path = pathTextOfRequest(request);
    if (hasTrailingSlash(path) && !this.#isSlashed(by)) return false;
    const isRivaled = this.#isRivaled.get(by.toString());
    if (isRivaled === false) return true;
    // All candidates have the path of a plain request, and a scope without `{}` covers it in each.
    const isSame = this.#folded.originals === undefined && !hasTrailingSlash(path);
    if (isSame && !by.path.includes('{') && this.#isPlain(request, path)) return true;
    return isRivaled === undefined && this.#isUnrivaledEntry(by);
  }

  candidates(request: ReadRequest): readonly Candidate[] {
    const { method, domain } = request;
    const path = pathTextOfRequest(request);
    if (this.#isPlain(request, path)) {
      const entry = this.#folded.lookup.find(method, domain, path);
      const isSlashed = hasTrailingSlash(path);
      if (entry === undefined && !isSlashed) return [{ path, named: 0 }];
      if (entry !== undefined && (!isSlashed || this.#isSlashed(entry))) {
        const isClear = !this.#isCrossing(entry) || this.#isAlone(entry, request, path);
        if (isClear) return [{ path, named: segmentBits(entry.path, false) }];
      }
    }
    return candidatesAmong(
      path,
      (segments) => this.#matching(method, domain, segments),
      (entry) => this.#isSlashed(entry),
    );
  }

  /** The entry of the root is written with its slash: there is no other way. */
  #isSlashed(entry: Scope): boolean {
    return entry.path === '$' || (this.#slashed.size > 0 && this.#slashed.has(entry.toString()));
  }

  /** Whether all routers compare the segments of a request with literals in lower case in the same way. */
  #isPlain({ method }: ReadRequest, { text, start, end, written }: RequestPath): boolean {
    if (written !== undefined || method === 'HEAD') return false;
    for (let i = start; i < end; i++) {
      const unit = text.charCodeAt(i);
      if (unit >= 0x41 && unit <= 0x5a) return false;
    }
    return true;
  }

  #matching(method: string, domain: string, segments: readonly string[]): Scope[] {
    const text = segments.map(fold).join('/');
    const path = { text, start: 0, end: text.length, isClosed: true, severed: 0 };
    const { lookup, originals } = this.#folded;
    const methods = method === 'HEAD' ? [method, 'GET'] : [method];
    const found = methods.flatMap((one) => lookup.findAll(one, domain, path, MAX_MATCHES));
    if (originals === undefined) return found;
    return found.flatMap((entry) => originals.get(entry.toString()) ?? []);
  }

  /** Whether a scope is an entry, and no request of it may belong to another one. */
  #isUnrivaledEntry(by: Scope): boolean {
    const text = by.toString();
    if (this.#lookup.coverOf(by)?.toString() !== text) return false;
    const isRivaled = by.method === 'HEAD' || this.#rivalsOf(by).length > 1;
    this.#isRivaled.set(text, isRivaled);
    return !isRivaled;
  }

  #rivalsOf({ method, domain, path }: Scope): readonly Scope[] {
    const { index, originals } = this.#folded;
    const folded = makeScope(method, domain, path.toLowerCase());
    const found = index.find('overlapping', patternsOf(folded), 2);
    return found.length === 1 ? (originals?.get(folded.toString()) ?? found) : found;
  }

  /**
   * Whether another entry overlaps an entry, and neither is the more specific one for all routers. For those
   * that respect case, no entry with an upper-case letter is the less specific one.
   */
  #isCrossing(entry: Scope): boolean {
    return getOrMake(this.#isCrossed, entry, () => {
      if (this.#isNearUpperCase(entry)) return true;
      const found = this.#folded.index.find('crossing', patternsOf(entry), MAX_MATCHES);
      const isCrossing = ({ path }: Scope) => !pathCovers(path, entry.path);
      return found.length === MAX_MATCHES || found.some(isCrossing);
    });
  }

  /** Whether no other entry covers a plain path of a request, however the letters of entries are read. */
  #isAlone(entry: Scope, { method, domain }: ReadRequest, path: RequestPath): boolean {
    if (!this.#isLower(entry)) return false;
    return this.#folded.lookup.findAll(method, domain, path, 2).length === 1;
  }

  /** Whether an entry has an upper-case letter, or overlaps one that does. */
  #isNearUpperCase(entry: Scope): boolean {
    const found = this.#folded.index.find('overlapping', patternsOf(entry), MAX_MATCHES);
    return found.length === MAX_MATCHES || !found.every((one) => this.#isLower(one));
  }

  /** Whether a folded entry stands for itself alone. */
  #isLower(folded: Scope): boolean {
    const { originals } = this.#folded;
    if (originals === undefined) return true;
    const written = originals.get(folded.toString());
    return written?.length === 1 && written[0] === folded;
  }
}

/** An entry that covers a request in its loosest reading. */
interface Match {
  readonly entry: Scope;
  /** The segments, as bits, that are not exactly as they were sent. */
  readonly loose: number;
  /** Whether they would be if they were decoded. */
  readonly isExactDecoded: boolean;
}

/** The candidates for a path, among the entries that a search finds. */
export function candidatesAmong(
  path: RequestPath,
  search: EntrySearch,
  isSlashed: (entry: Scope) => boolean,
): readonly Candidate[] {
  const normal = segmentsOf(path.text.slice(path.start, path.end));
  const written = path.written === undefined ? normal : segmentsOf(path.written);
  const matches = toMatches(search(written), written);
  const best = mostSpecific(matches);
  const isAlone = best.length > 0 && best.every(({ entry }) => isSlashed(entry));
  const longer = hasTrailingSlash(path) && !isAlone ? [...written, EMPTY] : undefined;
  const others = longer === undefined ? [] : toMatches(search(longer), longer);
  if (Math.max(matches.length, others.length) >= MAX_MATCHES) return [wholeHost(normal)];
  const isNew = ({ entry }: Match) => !best.some((one) => one.entry.path === entry.path);
  const below = mostSpecific(others).filter(isNew);
  const reading = { path, normal, written, contested: looseOf(best) | looseOf(below) };
  const candidates = best.map(({ entry }) => candidateOf(reading, entry));
  // A server that ignores case has no such entry; one that decodes alone serves the entry.
  if (!matches.some(({ isExactDecoded }) => isExactDecoded))
    candidates.unshift(candidateOf(reading, undefined));
  if (longer !== undefined) {
    const ended = { ...reading, normal: [...normal, EMPTY], written: longer };
    candidates.push(...below.map(({ entry }) => candidateOf(ended, entry)));
  }
  return candidates.length > MAX_CANDIDATES ? [wholeHost(normal)] : candidates;
}

/** Stands for too many candidates: only a scope for all paths covers it. */
function wholeHost(segments: readonly string[]): Candidate {
  return { path: pathOf([EMPTY, ...segments.slice(1)], 0), named: -1 };
}

function segmentsOf(path: string): string[] {
  return path === '' ? [] : path.split('/');
}

function entrySegments({ path }: Scope): string[] {
  return segmentsOf(withoutMark(path));
}

function pathOf(segments: readonly string[], severed: number): Candidate['path'] {
  const text = segments.join('/');
  return { text, start: 0, end: text.length, isClosed: true, severed };
}

/** The matches of entries, one for each path: HEAD and GET may share one. */
function toMatches(entries: readonly Scope[], written: readonly string[]): Match[] {
  const matches = new Map<string, Match>();
  for (const entry of entries) {
    let loose = 0;
    let isExactDecoded = true;
    for (const [position, segment] of entrySegments(entry).entries()) {
      const sent = written[position] as string;
      if (segment === '{}' || segment === sent) continue;
      loose |= FIRST_SEGMENT >>> position;
      if (decode(sent) !== segment) isExactDecoded = false;
    }
    matches.set(entry.path, { entry, loose, isExactDecoded });
  }
  return [...matches.values()];
}

/**
 * The matches that a router may choose: those without a more specific one that every router finds
 * that finds them.
 */
function mostSpecific(matches: readonly Match[]): Match[] {
  return matches.filter(
    (match) =>
      !matches.some(
        (other) =>
          other !== match &&
          (other.loose & ~match.loose) === 0 &&
          pathCovers(match.entry.path, other.entry.path),
      ),
  );
}

function looseOf(matches: readonly Match[]): number {
  return matches.reduce((bits, { loose }) => bits | loose, 0);
}

/** A path, and its segments in normal form and as they were sent. */
interface SegmentReading {
  readonly path: RequestPath;
  readonly normal: readonly string[];
  readonly written: readonly string[];
  /** The segments, as bits, that some routers take for a literal and others do not. */
  readonly contested: number;
}

/**
 * The path as the router reads it that chooses an entry. A segment that another router takes for a
 * literal remains as it was sent, because it is not that literal here.
 */
function candidateOf(
  { path, normal, written, contested }: SegmentReading,
  entry: Scope | undefined,
): Candidate {
  const literals = entry === undefined ? [] : entrySegments(entry);
  const segments = normal.map((segment, position) => {
    const literal = literals[position];
    if (literal !== undefined && literal !== '{}') return literal;
    const isContested = position < 32 && (contested & (FIRST_SEGMENT >>> position)) !== 0;
    return isContested ? (written[position] as string) : segment;
  });
  const named = entry === undefined ? 0 : segmentBits(entry.path, false);
  return { path: pathOf(segments, path.severed), named };
}
