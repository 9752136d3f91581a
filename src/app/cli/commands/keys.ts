import { dirname } from 'node:path';
import { generateKey, isTokenError, type KeyOptions } from '../../../index.ts';
import { count } from '../../../text/wording.ts';
import { Key, KeyRing } from '../../../values/keys.ts';
import {
  keyFileOf,
  makeKeys,
  readKeys,
  replaceKeys,
  weakKeys,
} from '../../server/files/key-file.ts';
import { describeOpen, openToOthers } from '../../server/files/permissions.ts';
import { makeFolder } from '../../server/files/private-file.ts';
import { readSettings } from '../../server/settings.ts';
import { inputError, usageError } from '../../terminal/errors.ts';
import { columns, jsonText } from '../../terminal/layout.ts';
import { type Command, command, findingsOutcome, type Given, type Outcome } from '../command.ts';
import { confirm } from '../confirm.ts';
import { KEYS_FLAG, STORE_FLAGS } from './store-flags.ts';

const KEY_FLAGS = {
  config: STORE_FLAGS.config,
  keys: KEYS_FLAG,
  data: {
    type: 'string',
    value: 'FOLDER',
    help: 'the data folder of serve, or TOKENWRIGHT_DATA; default ./data',
  },
} as const;

const KID_FLAG = {
  type: 'string',
  value: 'KID',
  help: 'the name of the key, which every value made with it contains: 2 characters of 0-9A-Za-z; default k1',
} as const;

const ROTATE_FLAGS = {
  kid: { ...KID_FLAG, help: KID_FLAG.help.replace('default k1', 'default the next free one') },
  stage: {
    type: 'boolean',
    help: 'add the new key, but keep the old one active: the new key only verifies',
  },
  activate: { type: 'string', value: 'KID', help: 'make this key the active one' },
  drop: {
    type: 'string',
    value: 'KID',
    help: 'remove a key that is not active. Its tokens are refused from then on, so this asks first',
  },
  yes: { type: 'boolean', help: 'confirm --drop; without a terminal it is required' },
} as const;

const KEY_FAULT = 'the file cannot be read or written, or is not a key file';

/** Explains key files. */
export const KEYS_HELP = `A key file is a JSON array of { kid, secret, status }. One key is active: new values are made with
it. The others only verify values that were made with them earlier. Anyone who can read the
file can make tokens. Keep it readable by its owner only, and do not store it in the database. Only keys new
--print and keys verifier print secrets.`;

/** The commands that manage the keys of a service. */
export const KEYS_COMMANDS: readonly Command[] = [
  command({
    name: 'keys new',
    summary: 'creates a key file with one active key',
    about: `It never overwrites a file. serve does this by itself if its data folder has no key file. Services that share a store need the
same key file.

${KEYS_HELP}`,
    flags: {
      ...KEY_FLAGS,
      kid: KID_FLAG,
      print: {
        type: 'boolean',
        help: 'print the keys with their secrets, for example for a vault, and create no file',
      },
    },
    json: '{ file, kid }; with --print, the keys',
    exits: { 0: 'the file was created, or the keys were printed', 1: KEY_FAULT },
    example: {
      call: 'keys new --keys keys.json',
      output: `created keys.json with the active key k1
pass --keys keys.json to serve and token, or set TOKENWRIGHT_KEYS; otherwise
they use keys.json in their data folder`,
    },
    async run(_, { print, kid, ...flags }) {
      const keys = [newKey(kid ?? 'k1')];
      if (print === true) return { text: jsonText(keys), json: keys };
      const file = fileOf(flags);
      if (flags.keys === undefined) makeFolder(dirname(file));
      if (!makeKeys(file, keys)) {
        throw inputError(`${file} already exists and was not changed; see keys rotate`);
      }
      const [key] = keys;
      return {
        text: `created ${file} with the active key ${key?.kid}`,
        json: { file, kid: key?.kid },
        ...(flags.keys !== undefined && {
          notes: `pass --keys ${file} to serve and token, or set TOKENWRIGHT_KEYS; otherwise\nthey use keys.json in their data folder`,
        }),
      };
    },
  }),
  command({
    name: 'keys rotate',
    summary: 'adds a new active key, and keeps the old ones',
    about: `The old keys verify the values that were made with them. For one service, run keys rotate, then send the service SIGHUP or restart it. All tokens stay
valid. If several services share a store, each of them must know a key before any of them makes
values with it. Rotate in three steps:

  1  keys rotate --stage
     adds a key that only verifies. Copy the file to all services, and send
     each SIGHUP or restart it
  2  keys rotate --activate KID
     makes new values with that key. Copy and reload again
  3  keys rotate --drop KID --yes
     removes the old key once no token uses it. Tokens that do are refused
     from then on, even if they have not expired. A modified token keeps its
     value and so its key: waiting for the longest lifetime after step 2 is
     enough only if nobody extends a token. Use token rotate for the rest

The file is replaced as a whole and is never half written.`,
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
changed keys.json; services read it again on SIGHUP`,
    },
    async run(_, flags) {
      const change = changeOf(flags);
      const file = fileOf(flags);
      if (flags.drop !== undefined) await confirmDrop(file, flags.drop, flags);
      const keys = replaceKeys(file, change);
      return {
        text: columns(keys.map(({ kid, status }) => [kid, status])),
        json: { file, keys: keys.map(({ kid, status }) => ({ kid, status })) },
        notes: `changed ${file}; services read it again on SIGHUP`,
      };
    },
  }),
  command({
    name: 'keys check',
    summary: 'lists the problems of a key file',
    about: `permissions  users other than its owner can read or change it
key          a key is invalid: its kid, its secret or its status
ring         the keys contradict each other: none or two are active, or a key
             is in the file twice
weak         a secret does not look like random bytes

${KEYS_HELP}`,
    flags: KEY_FLAGS,
    json: '[{ code, message }]',
    exits: { 0: 'no problem was found', 1: KEY_FAULT, 3: 'a problem was found' },
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
    about: `These keys can check values against the store, but can neither make a value nor show one
again. Give them to resource servers instead of the key file: new TokenService({ keys, … }), or token
verify --keys.`,
    flags: KEY_FLAGS,
    json: '[{ kid, secret, status }], as without --json',
    exits: { 0: 'the keys were printed', 1: KEY_FAULT },
    example: {
      call: 'keys verifier --keys keys.json > verifier.json',
      output: '1 key that only verifies; let only the resource server read it',
    },
    async run(_, flags) {
      const keys = new KeyRing(readKeys(fileOf(flags))).verifierKeys();
      return {
        text: jsonText(keys),
        json: keys,
        notes: `${count(keys.length, 'key')} that only ${keys.length === 1 ? 'verifies' : 'verify'}; let only the resource server read ${keys.length === 1 ? 'it' : 'them'}`,
      };
    },
  }),
];

function fileOf(flags: Given<typeof KEY_FLAGS>): string {
  return keyFileOf(readSettings(['keys', 'data'], flags));
}

function newKey(kid: string): KeyOptions {
  try {
    return generateKey(kid);
  } catch (error) {
    throw isTokenError(error) ? usageError(`--${error.message}`) : error;
  }
}

type KeyChange = (keys: readonly KeyOptions[]) => KeyOptions[];

function changeOf({ kid, stage, activate, drop }: Given<typeof ROTATE_FLAGS>): KeyChange {
  const given = [stage, activate, drop].filter((flag) => flag !== undefined);
  if (given.length > 1) {
    throw usageError('--stage, --activate and --drop are separate steps: give only one of them');
  }
  if (kid !== undefined && (activate ?? drop) !== undefined) {
    throw usageError('--kid names a new key; give --activate or --drop the name instead');
  }
  if (activate !== undefined) return (keys) => withActive(keys, activate);
  if (drop !== undefined) return (keys) => withoutKey(keys, drop);
  return (keys) => {
    const key = newKey(kid ?? nextKid(keys));
    if (keys.some((other) => other.kid === key.kid)) {
      throw inputError(`the key ${key.kid} already exists; give another --kid`);
    }
    const all = [...keys, { ...key, status: 'verify' as const }];
    return stage === true ? all : withActive(all, key.kid);
  };
}

function withActive(keys: readonly KeyOptions[], kid: string): KeyOptions[] {
  checkKnown(keys, kid);
  return keys.map((key) => ({ ...key, status: key.kid === kid ? 'active' : 'verify' }));
}

/** Refuses what cannot be done before it asks. */
async function confirmDrop(
  file: string,
  kid: string,
  flags: Pick<Given<typeof ROTATE_FLAGS>, 'yes'>,
): Promise<void> {
  withoutKey(readKeys(file), kid);
  await confirm(
    `every token whose value was made with ${kid} would be refused from then on`,
    flags,
  );
}

function withoutKey(keys: readonly KeyOptions[], kid: string): KeyOptions[] {
  checkKnown(keys, kid);
  if (keys.some((key) => key.kid === kid && key.status === 'active')) {
    throw inputError(`${kid} is the active key; first make another key active with --activate`);
  }
  return keys.filter((key) => key.kid !== kid);
}

function checkKnown(keys: readonly KeyOptions[], kid: string): void {
  if (keys.some((key) => key.kid === kid)) return;
  throw inputError(`no key has that name; the file has ${keys.map((key) => key.kid).join(', ')}`);
}

const KID_ENDS = '123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0';

function nextKid(keys: readonly KeyOptions[]): string {
  const taken = new Set(keys.map(({ kid }) => kid));
  const end = [...KID_ENDS].find((letter) => !taken.has(`k${letter}`));
  if (end !== undefined) return `k${end}`;
  throw inputError('all names from k1 to k0 are taken; give --kid');
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

/** Turns an error of the key ring into a finding. Its message never holds a secret. */
function findingOf(code: KeyFinding['code'], make: () => unknown): KeyFinding[] {
  try {
    make();
    return [];
  } catch (error) {
    if (!isTokenError(error)) throw error;
    return [{ code, message: error.message }];
  }
}
