import { describe, expect, it } from 'vitest';
import { type Finding, findingsIn, findingsInMessages, findingsInPage } from './english.ts';

const phrasesOf = (findings: Finding[]) => findings.map(({ phrase }) => phrase);
const only = (phrase: string | undefined) => (phrase === undefined ? [] : [phrase]);

describe('the check of the comments', () => {
  it.each([
    ['// refused at once', 'at once'],
    ['/** Whom it belongs to. */ export {};', 'Whom'],
    ['/** The account that it belongs to. */ export {};', undefined],
    ['/** The account, to whom it belongs. */', 'whom'],
    ['// it is no list', 'is no '],
    ['// there is no list', undefined],
    ['// it is no longer a list', undefined],
    ['/**\n * is refused at\n * once\n */', 'at once'],
    ['// is refused at\n// the moment', undefined],
    ['const text = "at once";', undefined],
    ['const a = 1; // of ours', 'of ours'],
  ])('finds in %j: %s', (text, phrase) => {
    expect(phrasesOf(findingsIn('a.ts', text))).toEqual(only(phrase));
  });
});

describe('the check of the messages', () => {
  it.each([
    ["fail('the store is away');", 'is away'],
    ["fail('the store is down');", undefined],
    [`fail(\`\${store} is away\`);`, 'is away'],
    [`fail(\`each of \${names} passes it by\`);`, 'passes it by'],
    ["fail('give the key, else nothing works');", ', else'],
    ["fail('give the key; otherwise nothing works');", undefined],
    ['if (a) b(); else c();', undefined],
    ["fail('this scope is none');", 'is none'],
    ["fail('there is none');", undefined],
    ["fail('onEvent is told');", 'is told'],
    ['// it is away', undefined],
  ])('finds in %j: %s', (text, phrase) => {
    expect(phrasesOf(findingsInMessages('a.ts', text))).toEqual(only(phrase));
  });

  it('reports the line of a text', () => {
    const [finding] = findingsInMessages('a.ts', 'one();\ntwo("refused at once");');
    expect(finding?.position).toBe('a.ts:2');
  });
});

describe('the check of the pages', () => {
  it.each([
    ['A misspelt scope is refused.', 'misspelt'],
    ['A misspelled scope is refused.', undefined],
    ['It is refused at\nonce.', 'at once'],
    ['It is refused at\n\nonce.', undefined],
    ['Whoever holds a value can use it.', 'Whoever'],
    ['Anybody who holds a value can use it, and so can whoever finds it.', undefined],
    ['What is sent is refused.', 'What is sent is refused'],
    ['| limit | What is sent is refused. |', 'What is sent is refused'],
    ['## What is promised', undefined],
    ['What is a scope?', undefined],
    ['```text\nrefused at once\n```', undefined],
    ['The code `at once` is a name.', undefined],
    ['- It is issued anew.', 'anew'],
    ['It has a file of its own.', 'of its own'],
    ['Save it as a file of your own project.', undefined],
    ['With a store of your own that counts, pass it.', 'a store of your own'],
    ['It needs the scope of its own method.', undefined],
    ['The limit holds, also if a process is killed.', ', also if'],
    ['You can also run it in CI.', undefined],
    ['Use the one of your proxy.', 'the one of'],
    ['Use one of your proxies.', undefined],
    ['The clock is that of the server.', 'that of the'],
    ['It refuses those that have limits.', 'those that'],
    ['A process loses what it had.', 'what it had'],
    ['See what a scope allows.', undefined],
    ['The old value goes on working.', 'goes on'],
    ['It is not used any more.', 'any more'],
    ['It does not allow any more scopes.', undefined],
  ])('finds in %j: %s', (text, phrase) => {
    expect(phrasesOf(findingsInPage('a.md', text))).toEqual(only(phrase));
  });
});
