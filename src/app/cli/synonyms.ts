import { nearestName } from '../../scope/nearest.ts';

/** Nouns under the names that people try, and that they had. */
export const NOUN_SYNONYMS: ReadonlyMap<string, string> = new Map([
  ['tokens', 'token'],
  ['scope', 'catalog'],
  ['scopes', 'catalog'],
  ['catalogs', 'catalog'],
  ['openapi', 'catalog'],
  ['key', 'keys'],
  ['db', 'store'],
  ['database', 'store'],
  ['start', 'serve'],
  ['run', 'serve'],
  ['server', 'serve'],
  ['man', 'docs'],
  ['error', 'docs'],
  ['completions', 'completion'],
]);

/** Verbs under the names that other tools give them, by the noun. */
export const VERB_SYNONYMS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  token: {
    create: 'issue',
    new: 'issue',
    add: 'issue',
    generate: 'issue',
    mint: 'issue',
    ls: 'list',
    show: 'get',
    info: 'get',
    view: 'get',
    describe: 'get',
    update: 'modify',
    edit: 'modify',
    set: 'modify',
    patch: 'modify',
    extend: 'modify',
    rename: 'modify',
    delete: 'revoke',
    remove: 'revoke',
    rm: 'revoke',
    destroy: 'revoke',
    roll: 'rotate',
    regenerate: 'rotate',
    disable: 'suspend',
    enable: 'resume',
    check: 'verify',
    test: 'verify',
    stats: 'usage',
    why: 'explain',
  },
  catalog: {
    check: 'lint',
    validate: 'lint',
    compare: 'diff',
    generate: 'from-openapi',
    import: 'from-openapi',
    ls: 'list',
    show: 'list',
    find: 'search',
    grep: 'search',
  },
  keys: {
    create: 'new',
    generate: 'new',
    init: 'new',
    add: 'rotate',
    delete: 'rotate --drop',
    remove: 'rotate --drop',
    rm: 'rotate --drop',
    list: 'check',
    ls: 'check',
    show: 'check',
    lint: 'check',
    public: 'verifier',
  },
  store: {
    init: 'migrate',
    create: 'migrate',
    upgrade: 'migrate',
    check: 'doctor',
    status: 'doctor',
    health: 'doctor',
    dump: 'backup',
    export: 'backup',
    move: 'copy',
    clean: 'purge',
    prune: 'purge',
    gc: 'purge',
    test: 'contract',
    verify: 'contract',
  },
};

/** Flags under the names that other tools give them: those that do it here. */
export const FLAG_SYNONYMS: ReadonlyMap<string, readonly string[]> = new Map([
  ['format', ['json']],
  ['output', ['json']],
  ['o', ['json']],
  ['expire', ['ttl']],
  ['expires', ['ttl', 'expire']],
  ['expiry', ['ttl', 'expire']],
  ['expires-at', ['expire', 'ttl']],
  ['expires-in', ['ttl']],
  ['lifetime', ['ttl']],
  ['duration', ['ttl']],
  ['days', ['ttl']],
  ['title', ['name']],
  ['label', ['name']],
  ['description', ['name']],
  ['username', ['user', 'account']],
  ['u', ['user']],
  ['server', ['url']],
  ['endpoint', ['url']],
  ['db', ['store']],
  ['database', ['store']],
  ['openapi', ['catalog']],
  ['spec', ['catalog']],
  ['ip', ['address']],
  ['max-uses', ['uses']],
  ['search', ['name', 'scope']],
  ['filter', ['name', 'scope']],
  ['page', ['all', 'limit']],
  ['force', ['yes']],
  ['f', ['yes']],
  ['y', ['yes']],
  ['q', ['quiet']],
  ['silent', ['quiet']],
]);

/** Words that stand for no command or flag, with what to do instead. */
const ADVICE: ReadonlyMap<string, string> = new Map([
  [
    'login',
    'nobody signs in once for all commands: give --url and --user, and a command asks for the password',
  ],
  [
    'explain',
    'use tokenwright docs CODE for an error code, and tokenwright token explain or tokenwright catalog explain for a request',
  ],
  [
    '--password',
    'the password has no flag, because flags are visible in process lists: set TOKENWRIGHT_PASSWORD, or let the command ask for it',
  ],
]);

/** What to do instead of a command or a flag that is nowhere. */
export function adviceOn(word: string): string | undefined {
  return ADVICE.get(word);
}

/** The flag that an unknown one stands for, as the end of a sentence; empty if there is none. */
export function flagHint(unknown: string, flags: readonly string[]): string {
  const same = FLAG_SYNONYMS.get(unknown)?.filter((flag) => flags.includes(flag)) ?? [];
  if (same.length > 0) return `: use ${same.map((flag) => `--${flag}`).join(' or ')}`;
  const near = nearestName(unknown, flags);
  return near === undefined ? '' : `; did you mean --${near}?`;
}
