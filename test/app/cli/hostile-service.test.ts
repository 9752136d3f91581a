import { createServer, type RequestListener } from 'node:http';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import { describeError } from '../../../src/app/terminal/error-message.ts';
import { CliError } from '../../../src/app/terminal/errors.ts';
import { jsonText, printableLines } from '../../../src/app/terminal/layout.ts';
import { hideVariables, listen, outcomeOf, type Run, run } from './support.ts';

const CREDENTIALS = { TOKENWRIGHT_USER: 'ada', TOKENWRIGHT_PASSWORD: 'canary' };

beforeEach(hideVariables);
beforeEach(() => {
  for (const [name, value] of Object.entries(CREDENTIALS)) vi.stubEnv(name, value);
});

const SCOPE = 'GET:shop.example/orders';
const ID = '7f3kQwB2mN8xR4tY6uZ1aC';
const VALUE = `tw_1k1${ID}${'s'.repeat(27)}${'c'.repeat(6)}`;
const PRINTABLE_LINES = /^(?:[^\p{C}\p{Zl}\p{Zp}]|\n)*$/u;
/** Clears the screen, sets the title, links, turns the text around, and begins lines of its own. */
const EVIL =
  'a\u001b[2J\u001b]0;x\u0007\u001b]8;;http://x\u001b\\\u009b31m\u202eb\u2066\u200e\u2028\r\ntokenwright: c\u007f\u0000';
/** What may reach a terminal: no control characters, no line separators, no marks of direction. */
const PLAIN = /^[^\p{C}\p{Zl}\p{Zp}]*$/u;

const TOKEN = {
  ...{ id: ID, token: VALUE, masked: EVIL, state: 'active', version: 1 },
  ...{ scopes: [EVIL, SCOPE], expire: 1_900_000_000, createdAt: 1_800_000_000 },
  ...{ name: EVIL, metadata: { [EVIL]: EVIL }, limits: { addresses: [EVIL] } },
};
const USAGE = {
  uses: 1,
  lastUsed: 1,
  refusals: 0,
  scopes: [{ scope: EVIL, uses: 1, lastUsed: 1 }],
};
const ADVICE = { unused: [EVIL], kept: [EVIL], since: 1 };
const EXPLANATION = {
  ...{ allowed: false, reason: EVIL, grantedBy: EVIL, needed: EVIL, smallest: EVIL, known: false },
  ...{ nearest: { scope: EVIL, failed: EVIL }, suggestions: [EVIL] },
};
const FINDING = { code: 'broad', token: TOKEN, scopes: [EVIL], message: EVIL, reasons: [EVIL] };
const INTROSPECTION = { active: true, scope: SCOPE, sub: EVIL, jti: ID, exp: 1_900_000_000 };

/** What every success of a service has. */
const SUCCESS = { success: true, message: '', error: null };

/** Each command that asks a service, and an answer to it in which every text is evil. */
const COMMANDS: readonly (readonly [words: string, answer: object])[] = [
  [`issue --scope ${SCOPE}`, TOKEN],
  [`derive --scope ${SCOPE} --token x`, TOKEN],
  ['list', { data: [TOKEN] }],
  [`get ${ID}`, { data: [TOKEN] }],
  [`usage ${ID}`, { data: USAGE }],
  [`advise ${ID}`, { data: ADVICE }],
  [`explain ${ID} --scope ${SCOPE}`, { data: EXPLANATION }],
  ['review', { data: [FINDING] }],
  [`modify ${ID} --name x`, { data: [TOKEN] }],
  [`suspend ${ID}`, { data: [TOKEN] }],
  [`resume ${ID}`, { data: [TOKEN] }],
  [`rotate ${ID}`, TOKEN],
  [`rotate ${ID} --cancel`, TOKEN],
  [`verify --scope ${SCOPE} --token x`, INTROSPECTION],
];

async function serviceOf(listener: RequestListener): Promise<string> {
  return `http://127.0.0.1:${await listen(createServer(listener))}`;
}

function answering(answer: unknown, status = 200, headers = {}): RequestListener {
  const body = typeof answer === 'string' ? answer : JSON.stringify(answer);
  return (_, response) => {
    response.writeHead(status, { connection: 'close', ...headers }).end(body);
  };
}

/** What the command line would print, in this process. */
async function ask(words: string, listener: RequestListener): Promise<Run> {
  const call = ['token', ...words.split(' '), '--url', await serviceOf(listener)];
  try {
    const { text, notes = '', isNegative } = await outcomeOf(call);
    return { stdout: `${text}\n`, stderr: `${notes}\n`, code: isNegative === true ? 3 : 0 };
  } catch (error) {
    const code = error instanceof CliError ? error.exitCode : 1;
    return { stdout: '', stderr: `tokenwright: ${describeError(error)}\n`, code };
  }
}

async function askForJson(words: string, listener: RequestListener): Promise<unknown> {
  const { json } = await outcomeOf([
    'token',
    ...words.split(' '),
    '--url',
    await serviceOf(listener),
  ]);
  return json;
}

/** The same in a process of its own. */
async function execute(words: string, listener: RequestListener): Promise<Run> {
  return run(['token', ...words.split(' '), '--url', await serviceOf(listener)], CREDENTIALS);
}

function expectPlain({ stdout, stderr }: Run): void {
  for (const line of `${stdout}\n${stderr}`.split('\n')) expect(line).toMatch(PLAIN);
}

describe('a hostile service', () => {
  it.each(COMMANDS)('cannot steer the terminal of token %s', async (words, answer) => {
    const ended = await ask(words, answering({ ...SUCCESS, ...answer }));
    const json = await askForJson(words, answering({ ...SUCCESS, ...answer }));

    expectPlain(ended);
    // One line of its own would be `tokenwright: c`.
    expect(ended.stdout + ended.stderr).not.toMatch(/^tokenwright/m);
    expect([0, 3]).toContain(ended.code);
    // The same JSON, with all that the service sent.
    expect(JSON.stringify(json)).toContain(JSON.stringify(EVIL).slice(1, -1));
    expect(jsonText(json)).toMatch(PRINTABLE_LINES);
    expect(JSON.parse(jsonText(json))).toEqual(json);
  });

  it.each([`issue --scope ${SCOPE}`, 'review'])(
    'cannot steer it in a process of its own, by token %s',
    async (words) => {
      const answer = { ...SUCCESS, ...COMMANDS.find(([command]) => command === words)?.[1] };

      const text = await execute(words, answering(answer));
      const json = await execute(`${words} --json`, answering(answer));

      expectPlain(text);
      expectPlain(json);
      expect(text.stdout).toMatch(words === 'review' ? /^broad/ : new RegExp(`^${VALUE}\n$`));
      expect(JSON.stringify(JSON.parse(json.stdout))).toContain(JSON.stringify(EVIL).slice(1, -1));
    },
  );

  it.each([...COMMANDS.map(([words]) => words), `revoke ${ID}`])(
    'cannot steer it by an error of token %s',
    async (words) => {
      const error = { message: EVIL, code: EVIL, details: { member: EVIL } };
      const headers = { 'retry-after': '7\u009b2J', 'www-authenticate': 'Bearer \u009b2J' };

      const ended = [
        await ask(words, answering(error, 422, headers)),
        await ask(
          words,
          answering({ error: EVIL, error_description: EVIL }, 503, { 'retry-after': 'soon' }),
        ),
      ];

      for (const each of ended) {
        expectPlain(each);
        expect(each.stderr).toMatch(/^tokenwright: http:\S+ refuses with (?:422|503): a\?/);
        expect(each.stderr).not.toContain('try again');
        expect(each).toMatchObject({ code: 1, stdout: '' });
      }
    },
  );

  it.each([
    ['a value with control characters', { ...TOKEN, token: `${VALUE}\u001b[2J` }],
    ['a value with a line end', { ...TOKEN, token: `${VALUE}\n` }],
    ['a value in other letters', { ...TOKEN, token: VALUE.replace('tw_', 'тw_') }],
    ['a value that is a command', { ...TOKEN, token: 'curl x | sh' }],
    ['a masked value', { ...TOKEN, token: 'tw_1k17f3kQw…' }],
    ['no value', { ...TOKEN, token: ID }],
    ['a time that is no date', { ...TOKEN, expire: 9_000_000_000_000_000 }],
    ['a time before all', { ...TOKEN, createdAt: -9_000_000_000_000_000 }],
    ['an id that is none', { ...TOKEN, id: EVIL }],
    ['a state that is none', { ...TOKEN, state: EVIL }],
    [
      'metadata without end',
      `${JSON.stringify({ ...SUCCESS, ...TOKEN, metadata: undefined }).slice(0, -1)},"metadata":{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}}`,
    ],
    ['a text instead', '"x"'],
    ['nothing', ''],
  ])('is not believed: %s', async (_, token) => {
    const answer = typeof token === 'string' ? token : { ...SUCCESS, ...token };

    const ended = await ask(`issue --scope ${SCOPE}`, answering(answer));

    expect(ended).toMatchObject({ code: 1, stdout: '' });
    expect(ended.stderr).toMatch(/ does not answer as a token service does \(200\)/);
  });

  it.each([
    ['a finding with a code that is none', 'review', { data: [{ ...FINDING, code: EVIL }] }],
    ['a finding with an object', 'review', { data: [{ ...FINDING, reasons: { a: [[]] } }] }],
    ['a page of too many', 'list', { data: Array.from({ length: 101 }, () => TOKEN) }],
    ['scopes that are none', 'verify', { ...INTROSPECTION, scope: EVIL }],
  ])('is not believed: %s', async (_, verb, answer) => {
    const words = verb === 'verify' ? `verify --scope ${SCOPE} --token x` : verb;

    const ended = await ask(words, answering({ ...SUCCESS, ...answer }));

    expect(ended.stderr).toMatch(/ does not answer as a token service does \(200\)/);
    expect(ended.code).toBe(1);
  });

  it('is not read beyond 16 MiB', async () => {
    let sent = 0;
    const endless: RequestListener = (_, response) => {
      const chunk = Buffer.alloc(1_000_000, ' ');
      const more = () => {
        if (response.destroyed) return;
        sent += chunk.length;
        response.write(chunk, more);
      };
      more();
    };

    const ended = await ask('list', endless);

    expect(ended.stderr).toContain('does not answer as a token service does');
    expect(sent).toBeGreaterThan(15_000_000);
    expect(sent).toBeLessThan(60_000_000);
  });

  it.each(['list --limit 1000', 'review'])(
    'cannot send the same page for ever: %s',
    async (words) => {
      let asked = 0;
      const ended = await ask(words, (request, response) => {
        asked += 1;
        answering({ ...SUCCESS, data: [], cursor: 'next' })(request, response);
      });

      expect(ended.stderr).toContain('does not answer as a token service does');
      expect(asked).toBe(2);
    },
  );

  it('gets no credentials by a redirect, and names no place', async () => {
    const elsewhere = { location: 'http://127.0.0.1:1/\u009b2J' };

    const ended = await ask('list', answering('', 307, elsewhere));

    expectPlain(ended);
    expect(ended.stderr).toContain('cannot be reached, or does not answer');
    expect(ended.stderr).not.toContain('127.0.0.1:1/');
  });

  it('cannot fill the terminal with an error', async () => {
    const ended = await ask('list', answering({ message: 'x '.repeat(1_000_000) }, 422));

    expect(ended.stderr.length).toBeLessThan(1200);
  });
});

describe('an honest service', () => {
  it('has its names shown as they are, in every script', async () => {
    const token = {
      ...TOKEN,
      ...{ name: 'caf\u00e9 日本 🙂', scopes: [SCOPE] },
      metadata: { ключ: 1 },
    };

    const one = { ...SUCCESS, data: [token] };

    const text = await ask(`get ${ID}`, answering(one));
    const made = await ask(`issue --scope ${SCOPE}`, answering({ ...SUCCESS, ...token }));
    const json = await askForJson(`get ${ID}`, answering(one));

    expect(text.stdout).toContain('name      café 日本 🙂\n');
    expect(text.stdout).toContain('{"ключ":1}');
    expect(made.stdout).toBe(`${VALUE}\n`);
    expect(jsonText(json)).toContain('"name": "café 日本 🙂"');
  });
});

describe('the output', () => {
  it.each([
    ['\u001b[2J', '\\u001b[2J', '?[2J'],
    ['\u007f\u009b\u202e', '\\u007f\\u009b\\u202e', '???'],
    ['a\u2028b', 'a\\u2028b', 'a?b'],
    // A tag, which no terminal shows, is two units in JSON.
    ['\u{e0041}', '\\udb40\\udc41', '?'],
    ['é日🙂', 'é日🙂', 'é日🙂'],
  ])('writes %j as JSON and as a text', (text, inJson, printed) => {
    expect(jsonText([text])).toBe(`[\n  "${inJson}"\n]`);
    expect(JSON.parse(jsonText([text]))).toEqual([text]);
    expect(printableLines(`${text}\n${text}`)).toBe(`${printed}\n${printed}`);
  });
});
