import type { TokenStore } from '../../src/ports/token-store.ts';
import { LISTED_STATES } from '../../src/token/record.ts';
import { CREATED, newRecord } from './support.ts';

/** After the end of every record. */
export const ENDED = new Date('2102-01-01T00:00:00.000Z');
export const COUNT = { account: 'acme', liveAt: CREATED, most: { live: 100, ended: 100 } };
export const PRUNE = { account: 'acme', now: ENDED, limit: 10 };
export const PURGE = { now: ENDED, minAgeMs: 0, limit: 10 };

const PAGE = { account: 'acme', limit: 2, liveAt: CREATED };
const ONE = newRecord('one').id;

type Verb = readonly [
  name: string,
  call: (store: TokenStore & Required<Pick<TokenStore, 'hasReached'>>) => Promise<unknown>,
];

const pages = (name: string, more: object): readonly Verb[] =>
  LISTED_STATES.map((state) => [
    `page of ${name}${state}`,
    (store) => store.page({ ...PAGE, ...more, state }),
  ]);

/** The calls of a store that send statements of their own, on a table with the record "one". */
export const VERBS: readonly Verb[] = [
  ['insert', (store) => store.insert(newRecord('two'))],
  ['count', (store) => store.count(COUNT)],
  ['count of a root', (store) => store.count({ ...COUNT, root: ONE })],
  ['find', (store) => store.find([ONE])],
  ['find of several', (store) => store.find([ONE, newRecord('two').id])],
  ['page', (store) => store.page(PAGE)],
  ['page up to a size', (store) => store.page({ ...PAGE, maxBytes: 1000 })],
  ...pages('', {}).filter(([name]) => name !== 'page of active'),
  ...pages('by expiry: ', { order: 'expire' }),
  ...pages('children: ', { parent: ONE }),
  ...pages('descendants: ', { root: ONE }),
  ['replace', (store) => store.replace(newRecord('one', { version: 2 }))],
  ['revoke', (store) => store.revoke(ONE, 'acme', CREATED)],
  ['revokeAll', (store) => store.revokeAll('acme', CREATED, 1000)],
  ['purge', (store) => store.purge(PURGE)],
  ['prune', (store) => store.prune(PRUNE)],
  ['prune of a root', (store) => store.prune({ ...PRUNE, root: ONE })],
  ['hasReached', (store) => store.hasReached(CREATED)],
];

export const WRITES = VERBS.filter(([verb]) => !/^(find|page|count|hasReached)/.test(verb));
