import {
  closeSync,
  fchownSync,
  fsyncSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { isTokenError } from '../errors.ts';
import { generateKey, Key, type KeyOptions, KeyRing } from '../keys.ts';
import { type Command, columns, command, count, listFindings, type Outcome } from './command.ts';
import { InputError, keyFile, makeFolder, makeKeys, readKeys } from './files.ts';
import { readStoreSettings, readVariable, UsageError } from './settings.ts';

const OWNER_ONLY = 0o600;
const OTHERS = 0o077;

const KEY_FLAGS = {
  keys: {
    type: 'string',
    value: 'FILE',
    help: 'the file; default keys.json of the data, as for serve; or TOKENWRIGHT_KEYS',
  },
  data: {
    type: 'string',
    value: 'FOLDER',
    help: 'the folder of serve; default ./data; or TOKENWRIGHT_DATA',
  },
} as const;

const KID_FLAG = {
  type: 'string',
  value: 'KID',
  help: 'what it is called in the values made with it: 2 characters of 0-9A-Za-z; default k1',
} as const;

const KEY_EXITS = `1  the file cannot be read or written, or is not one of keys
2  the command line is wrong`;

/** What a file of keys is, for the help of the group. */
export const KEYS_HELP = `A file of keys is a JSON array of { kid, secret, status }: one key is active, new values are made
with it; the others verify the values that were made with them before. Whoever can read it can
make tokens: it is for its owner only, and kept outside the database. No command but keys new
--print and keys verifier prints a secret.`;

/** The commands that look after the keys of a service. */
export const KEYS_COMMANDS: readonly Command[] = [
  command({
    name: 'keys new',
    operands: [],
    summary: 'makes a file of keys with one active key; never over one that is there',
    about: `serve does this by itself where its data has none. Services on one store need the same file.

${KEYS_HELP}`,
    flags: {
      ...KEY_FLAGS,
      kid: KID_FLAG,
      print: {
        type: 'boolean',
        help: 'print the keys with their secret, for a vault, and make no file',
      },
    },
    json: '{ file, kid }; with --print the keys',
    exits: `0  it was made\n${KEY_EXITS}`,
    example: {
      call: 'keys new --keys keys.json',
      output: `keys.json: made, with the active key k1
for serve and token it is --keys keys.json, or TOKENWRIGHT_KEYS: without, they
take keys.json of their data`,
    },
    async run(_, { print, kid, ...flags }) {
      const keys = [newKey(kid ?? 'k1')];
      if (print === true) return { text: JSON.stringify(keys, null, 2), json: keys };
      const file = fileOf(flags);
      if (flags.keys === undefined) makeFolder(dirname(file));
      if (!makeKeys(file, keys)) {
        throw new InputError(`${file} is there already, and stays as it is; see keys rotate`);
      }
      const [key] = keys;
      return {
        text: `${file}: made, with the active key ${key?.kid}`,
        json: { file, kid: key?.kid },
        ...(flags.keys !== undefined && {
          notes: `for serve and token it is --keys ${file}, or TOKENWRIGHT_KEYS: without, they\ntake keys.json of their data`,
        }),
      };
    },
  }),
  command({
    name: 'keys rotate',
    operands: [],
    summary: 'adds a new active key and keeps the old ones to verify, in one step',
    about: `For one service: keys rotate, then restart it. Tokens stay valid, and none has to be issued
again. Where several services share a store, each must know a key before any of them makes
values with it:

  1  keys rotate --stage
     adds a key that only verifies yet. Bring the file to all services, and
     restart them
  2  keys rotate --activate KID
     now values are made with it. The same again
  3  keys rotate --drop KID --yes
     when no token of the old key is left: what was made with it is refused
     at once, whatever its expiry. The longest lifetime after step 2 is enough
     only where nobody lengthens a life: a token that is modified keeps its
     value, and so its key. Those that are left get a new one by token rotate

The file is replaced as a whole, so that it is never half written.`,
    flags: {
      ...KEY_FLAGS,
      kid: { ...KID_FLAG, help: KID_FLAG.help.replace('default k1', 'default the next one') },
      stage: { type: 'boolean', help: 'add the new key as one that only verifies yet' },
      activate: { type: 'string', value: 'KID', help: 'make the key of this name the active one' },
      drop: {
        type: 'string',
        value: 'KID',
        help: 'remove a key that is not active: its tokens are refused at once. Needs --yes',
      },
      yes: { type: 'boolean', help: 'you mean it' },
    },
    json: '{ file, keys: [{ kid, status }] }',
    exits: `0  the file was changed\n${KEY_EXITS}`,
    example: {
      call: 'keys rotate --keys keys.json',
      output: `k1  verify
k2  active
keys.json is changed; services read it when they start`,
    },
    async run(_, flags) {
      const change = changeOf(flags);
      const file = fileOf(flags);
      const keys = replaceKeys(file, change);
      return {
        text: columns(keys.map(({ kid, status }) => [kid, status])),
        json: { file, keys: keys.map(({ kid, status }) => ({ kid, status })) },
        notes: `${file} is changed; services read it when they start`,
      };
    },
  }),
  command({
    name: 'keys check',
    operands: [],
    summary: 'names what is wrong with a file of keys',
    about: `permissions  others than its owner can read or change it
key          a key is not one: its kid, its secret or its status
ring         the keys do not go together: none active, two, or one used twice
weak         a secret does not look like random bytes

${KEYS_HELP}`,
    flags: KEY_FLAGS,
    json: '[{ code, message }]',
    exits: `0  nothing was found\n${KEY_EXITS}\n3  something was found`,
    example: {
      call: 'keys check --keys keys.json',
      output: `permissions  others than the owner can read or change it (0644); run chmod 600
             on it
1 finding in keys.json: k1 verifies, k2 is active`,
    },
    async run(_, flags) {
      const file = fileOf(flags);
      return describeFindings(file, readKeys(file));
    },
  }),
  command({
    name: 'keys verifier',
    operands: [],
    summary: 'prints the keys for a service that only verifies',
    about: `They check values against the store, and can neither make a value nor show one again. Give
them to resource servers instead of the file itself: new TokenService({ keys, … }), or token
verify --keys.`,
    flags: KEY_FLAGS,
    json: '[{ kid, secret, status }]; the same as without',
    exits: `0  they were printed\n${KEY_EXITS}`,
    example: {
      call: 'keys verifier --keys keys.json > verifier.json',
      output: '1 key that only verifies; for the resource server alone to read',
    },
    async run(_, flags) {
      const keys = new KeyRing(readKeys(fileOf(flags))).verifierKeys();
      return {
        text: JSON.stringify(keys, null, 2),
        json: keys,
        notes: `${count(keys.length, 'key')} that only ${keys.length === 1 ? 'verifies' : 'verify'}; for the resource server alone to read`,
      };
    },
  }),
];

interface KeyFlags {
  readonly keys?: string;
  readonly data?: string;
}

/** As serve finds it: its data do not say where keys are that have a place of their own. */
function fileOf({ keys, data }: KeyFlags): string {
  const given = keys ?? readVariable('TOKENWRIGHT_KEYS');
  return given ?? keyFile(readStoreSettings({ ...(data && { data }) }, process.env).data);
}

function newKey(kid: string): KeyOptions {
  try {
    return generateKey(kid);
  } catch (error) {
    throw isTokenError(error) ? new UsageError(`--${error.message}`) : error;
  }
}

type Change = (keys: readonly KeyOptions[]) => KeyOptions[];

interface RotateFlags {
  readonly kid?: string;
  readonly stage?: boolean;
  readonly activate?: string;
  readonly drop?: string;
  readonly yes?: boolean;
}

function changeOf({ kid, stage, activate, drop, yes }: RotateFlags): Change {
  const given = [stage, activate, drop].filter((flag) => flag !== undefined);
  if (given.length > 1) {
    throw new UsageError('--stage, --activate and --drop are steps of their own: give one of them');
  }
  if (kid !== undefined && (activate ?? drop) !== undefined) {
    throw new UsageError('--kid names a new key; --activate and --drop take the name themselves');
  }
  if (activate !== undefined) return (keys) => withActive(keys, activate);
  if (drop !== undefined) return (keys) => withoutKey(keys, drop, yes === true);
  return (keys) => {
    const key = newKey(kid ?? nextKid(keys));
    if (keys.some((other) => other.kid === key.kid)) {
      throw new InputError(`there is a key ${key.kid} already; give another --kid`);
    }
    const all = [...keys, { ...key, status: 'verify' as const }];
    return stage === true ? all : withActive(all, key.kid);
  };
}

function withActive(keys: readonly KeyOptions[], kid: string): KeyOptions[] {
  checkKnown(keys, kid);
  return keys.map((key) => ({ ...key, status: key.kid === kid ? 'active' : 'verify' }));
}

function withoutKey(keys: readonly KeyOptions[], kid: string, isMeant: boolean): KeyOptions[] {
  checkKnown(keys, kid);
  if (keys.some((key) => key.kid === kid && key.status === 'active')) {
    throw new InputError(`${kid} is the active key; first make another one active`);
  }
  if (isMeant) return keys.filter((key) => key.kid !== kid);
  throw new UsageError(
    `every token whose value was made with ${kid} would be refused at once: add --yes to do it`,
  );
}

function checkKnown(keys: readonly KeyOptions[], kid: string): void {
  if (keys.some((key) => key.kid === kid)) return;
  throw new InputError(
    `there is no key of that name; there are ${keys.map((key) => key.kid).join(', ')}`,
  );
}

const KID_ENDS = '123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0';

function nextKid(keys: readonly KeyOptions[]): string {
  const taken = new Set(keys.map(({ kid }) => kid));
  const end = [...KID_ENDS].find((letter) => !taken.has(`k${letter}`));
  if (end !== undefined) return `k${end}`;
  throw new InputError('all of k1 to k0 are taken; give --kid');
}

/**
 * Reads a file of keys, changes them, and puts the result in its place as a whole. The draft is the
 * lock, too: of two at once, one is refused. Links stay, and so does the owner.
 */
function replaceKeys(path: string, change: Change): readonly KeyOptions[] {
  new KeyRing(readKeys(path));
  const file = realpathSync(path);
  const draft = `${file}.new`;
  const handle = openDraft(draft);
  try {
    try {
      const keys = change(readKeys(file));
      new KeyRing(keys);
      const { uid, gid } = statSync(file);
      if (process.getuid?.() === 0) fchownSync(handle, uid, gid);
      writeFileSync(handle, `${JSON.stringify(keys, null, 2)}\n`);
      fsyncSync(handle);
      renameSync(draft, file);
      syncFolder(dirname(file));
      return keys;
    } finally {
      closeSync(handle);
    }
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}

function openDraft(draft: string): number {
  try {
    return openSync(draft, 'wx', OWNER_ONLY);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new InputError(
      `${draft} is there: the keys are being changed, or that was interrupted and it can be removed`,
    );
  }
}

/** So that the new name outlives a power failure, too. Windows has no such call. */
function syncFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const handle = openSync(resolve(folder), 'r');
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
}

interface KeyFinding {
  readonly code: 'permissions' | 'key' | 'ring' | 'weak';
  readonly message: string;
}

function describeFindings(file: string, keys: readonly KeyOptions[]): Outcome {
  const findings = [...permissionFindings(file), ...keyFindings(keys)];
  const found = findings.length === 0 ? 'nothing found' : count(findings.length, 'finding');
  const known = findings.some(({ code }) => code === 'key')
    ? ''
    : `: ${keys.map(({ kid, status }) => `${kid} ${status === 'active' ? 'is active' : 'verifies'}`).join(', ')}`;
  return {
    text: listFindings(findings),
    json: findings,
    notes: `${found} in ${file}${known}`,
    isNegative: findings.length > 0,
  };
}

function permissionFindings(file: string): KeyFinding[] {
  const { mode } = statSync(file);
  if (process.platform === 'win32' || (mode & OTHERS) === 0) return [];
  const octal = (mode & 0o777).toString(8).padStart(4, '0');
  return [
    {
      code: 'permissions',
      message: `others than the owner can read or change it (${octal}); run chmod 600 on it`,
    },
  ];
}

function keyFindings(keys: readonly KeyOptions[]): KeyFinding[] {
  const faults = keys.flatMap((key, place) =>
    findingOf('key', () => new Key(key, `keys[${place}]`)),
  );
  if (faults.length > 0) return faults;
  return [
    ...findingOf('ring', () => new KeyRing(keys)),
    ...keys.flatMap(({ kid, secret }): KeyFinding[] =>
      looksRandom(String(secret))
        ? []
        : [
            {
              code: 'weak',
              message: `the secret of ${kid} does not look like random bytes: add a key with keys rotate, then drop this one`,
            },
          ],
    ),
  ];
}

/** In the words of the ring, which names the key and never its value. */
function findingOf(code: KeyFinding['code'], make: () => unknown): KeyFinding[] {
  try {
    make();
    return [];
  } catch (error) {
    if (!isTokenError(error)) throw error;
    return [{ code, message: error.message }];
  }
}

/**
 * Whether a secret could be drawn from random bytes: of 32 such ones fewer than 16 different never
 * occur, nor 43 letters of base64url without an upper-case one, unless it is hexadecimal.
 */
function looksRandom(secret: string): boolean {
  const text = secret.replace(/^tag\./, '');
  const bytes = Buffer.from(text, 'base64url');
  const isText = /^[\t\n\r -~]+$/.test(bytes.toString('latin1'));
  const isWords = !/[A-Z]/.test(text) && !/^[0-9a-f]+$/.test(text);
  const different = new Set(bytes).size;
  return different >= 16 && !isText && !isWords;
}
