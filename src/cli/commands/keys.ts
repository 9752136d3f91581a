import { dirname } from 'node:path';
import { isTokenError } from '../../errors.ts';
import { generateKey, Key, type KeyOptions, KeyRing } from '../../values/keys.ts';
import { type Command, command, findingsOutcome, type Given, type Outcome } from '../command.ts';
import { inputError, usageError } from '../errors.ts';
import { keyFile, makeKeys, readKeys, replaceKeys } from '../key-file.ts';
import { columns, count } from '../layout.ts';
import { describeOpen, openToOthers } from '../permissions.ts';
import { makeFolder } from '../private-file.ts';
import { readSettings } from '../settings.ts';
import { weakKeys } from '../weak-keys.ts';

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

const ROTATE_FLAGS = {
  kid: { ...KID_FLAG, help: KID_FLAG.help.replace('default k1', 'default the next one') },
  stage: { type: 'boolean', help: 'add the new key as one that only verifies yet' },
  activate: { type: 'string', value: 'KID', help: 'make the key of this name the active one' },
  drop: {
    type: 'string',
    value: 'KID',
    help: 'remove a key that is not active: its tokens are then refused immediately. Needs --yes',
  },
  yes: { type: 'boolean', help: 'you mean it' },
} as const;

const KEY_FAULT = 'the file cannot be read or written, or is not one of keys';

/** Explains files of keys. */
export const KEYS_HELP = `A file of keys is a JSON array of { kid, secret, status }: one key is active, new values are made
with it; the others verify the values that were made with them before. Anyone who can read
it can make tokens: keep it readable by its owner only, and outside the database. No command but keys new
--print and keys verifier prints a secret.`;

/** The commands that manage the keys of a service. */
export const KEYS_COMMANDS: readonly Command[] = [
  command({
    name: 'keys new',
    summary: 'makes a file of keys with one active key; never overwrites a file',
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
    exits: { 0: 'it was made', 1: KEY_FAULT },
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
        throw inputError(`${file} is there already, and stays as it is; see keys rotate`);
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
    summary: 'adds a new active key and keeps the old ones to verify, in one step',
    about: `For one service: keys rotate, then send it SIGHUP or restart it. Tokens stay valid, and none has to be issued
again. Where several services share a store, each must know a key before any of them makes
values with it:

  1  keys rotate --stage
     adds a key that only verifies yet. Bring the file to all services, and
     restart them
  2  keys rotate --activate KID
     now values are made with it. The same again
  3  keys rotate --drop KID --yes
     when no token of the old key is left: what was made with it is refused
     immediately, whatever its expiry. The longest lifetime after step 2 is
     enough only if nobody lengthens one: a token that is modified keeps its
     value, and so its key. For those that are left, use token rotate

The file is replaced as a whole, so that it is never half written.`,
    flags: {
      ...KEY_FLAGS,
      ...ROTATE_FLAGS,
    },
    json: '{ file, keys: [{ kid, status }] }',
    exits: { 0: 'the file was changed', 1: KEY_FAULT },
    example: {
      call: 'keys rotate --keys keys.json',
      output: `k1  verify
k2  active
keys.json is changed; services read it on SIGHUP`,
    },
    async run(_, flags) {
      const change = changeOf(flags);
      const file = fileOf(flags);
      const keys = replaceKeys(file, change);
      return {
        text: columns(keys.map(({ kid, status }) => [kid, status])),
        json: { file, keys: keys.map(({ kid, status }) => ({ kid, status })) },
        notes: `${file} is changed; services read it on SIGHUP`,
      };
    },
  }),
  command({
    name: 'keys check',
    summary: 'lists the problems of a file of keys',
    about: `permissions  users other than its owner can read or change it
key          a key is not one: its kid, its secret or its status
ring         the keys do not go together: none active, two, or one used twice
weak         a secret does not look like random bytes

${KEYS_HELP}`,
    flags: KEY_FLAGS,
    json: '[{ code, message }]',
    exits: { 0: 'nothing was found', 1: KEY_FAULT, 3: 'something was found' },
    example: {
      call: 'keys check --keys keys.json',
      output: `permissions  other users can read keys.json (mode 0644); run: chmod 600
             keys.json
1 finding in keys.json: k1 verifies, k2 is active`,
    },
    async run(_, flags) {
      const file = fileOf(flags);
      return describeFindings(file, readKeys(file));
    },
  }),
  command({
    name: 'keys verifier',
    summary: 'prints the keys for a service that only verifies',
    about: `They check values against the store, and can neither make a value nor show one again. Give
them to resource servers instead of the file itself: new TokenService({ keys, … }), or token
verify --keys.`,
    flags: KEY_FLAGS,
    json: '[{ kid, secret, status }]; the same as without',
    exits: { 0: 'they were printed', 1: KEY_FAULT },
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

/** Finds the keys as serve does. */
function fileOf(flags: Given<typeof KEY_FLAGS>): string {
  const { keys, data } = readSettings(['keys', 'data'], flags);
  return keys ?? keyFile(data);
}

function newKey(kid: string): KeyOptions {
  try {
    return generateKey(kid);
  } catch (error) {
    throw isTokenError(error) ? usageError(`--${error.message}`) : error;
  }
}

type Change = (keys: readonly KeyOptions[]) => KeyOptions[];

function changeOf({ kid, stage, activate, drop, yes }: Given<typeof ROTATE_FLAGS>): Change {
  const given = [stage, activate, drop].filter((flag) => flag !== undefined);
  if (given.length > 1) {
    throw usageError('--stage, --activate and --drop are steps of their own: give one of them');
  }
  if (kid !== undefined && (activate ?? drop) !== undefined) {
    throw usageError('--kid names a new key; --activate and --drop take the name themselves');
  }
  if (activate !== undefined) return (keys) => withActive(keys, activate);
  if (drop !== undefined) return (keys) => withoutKey(keys, { kid: drop, isMeant: yes === true });
  return (keys) => {
    const key = newKey(kid ?? nextKid(keys));
    if (keys.some((other) => other.kid === key.kid)) {
      throw inputError(`there is a key ${key.kid} already; give another --kid`);
    }
    const all = [...keys, { ...key, status: 'verify' as const }];
    return stage === true ? all : withActive(all, key.kid);
  };
}

function withActive(keys: readonly KeyOptions[], kid: string): KeyOptions[] {
  checkKnown(keys, kid);
  return keys.map((key) => ({ ...key, status: key.kid === kid ? 'active' : 'verify' }));
}

function withoutKey(
  keys: readonly KeyOptions[],
  { kid, isMeant }: { readonly kid: string; readonly isMeant: boolean },
): KeyOptions[] {
  checkKnown(keys, kid);
  if (keys.some((key) => key.kid === kid && key.status === 'active')) {
    throw inputError(`${kid} is the active key; first make another one active`);
  }
  if (isMeant) return keys.filter((key) => key.kid !== kid);
  throw usageError(
    `every token whose value was made with ${kid} would be refused immediately: add --yes to do it`,
  );
}

function checkKnown(keys: readonly KeyOptions[], kid: string): void {
  if (keys.some((key) => key.kid === kid)) return;
  throw inputError(
    `there is no key of that name; there are ${keys.map((key) => key.kid).join(', ')}`,
  );
}

const KID_ENDS = '123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0';

function nextKid(keys: readonly KeyOptions[]): string {
  const taken = new Set(keys.map(({ kid }) => kid));
  const end = [...KID_ENDS].find((letter) => !taken.has(`k${letter}`));
  if (end !== undefined) return `k${end}`;
  throw inputError('all of k1 to k0 are taken; give --kid');
}

interface KeyFinding {
  readonly code: 'permissions' | 'key' | 'ring' | 'weak';
  readonly message: string;
}

function describeFindings(file: string, keys: readonly KeyOptions[]): Outcome {
  const findings = [...permissionFindings(file), ...keyFindings(keys)];
  const known = findings.some(({ code }) => code === 'key')
    ? ''
    : `: ${keys.map(({ kid, status }) => `${kid} ${status === 'active' ? 'is active' : 'verifies'}`).join(', ')}`;
  return findingsOutcome(findings, `${file}${known}`);
}

function permissionFindings(file: string): KeyFinding[] {
  const open = openToOthers(file);
  return open === undefined ? [] : [{ code: 'permissions', message: describeOpen(open) }];
}

function keyFindings(keys: readonly KeyOptions[]): KeyFinding[] {
  const faults = keys.flatMap((key, index) =>
    findingOf('key', () => new Key(key, `keys[${index}]`)),
  );
  if (faults.length > 0) return faults;
  return [
    ...findingOf('ring', () => new KeyRing(keys)),
    ...weakKeys(keys).map((message): KeyFinding => ({ code: 'weak', message })),
  ];
}

/** Takes the message of the key ring, which never holds a secret. */
function findingOf(code: KeyFinding['code'], make: () => unknown): KeyFinding[] {
  try {
    make();
    return [];
  } catch (error) {
    if (!isTokenError(error)) throw error;
    return [{ code, message: error.message }];
  }
}
