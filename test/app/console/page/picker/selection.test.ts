import { describe, expect, it } from 'vitest';
import { isReadOnly } from '../../../../../src/app/console/page/picker/selection.ts';
import { setUp } from './support.ts';

const ORDERS = [
  'GET:a.example/orders$',
  'POST:a.example/orders$',
  'GET:a.example/orders/{}$',
  'DELETE:a.example/orders/{}$',
  'GET:b.example/bills$',
];

describe('Selection', () => {
  it('reports whether none, some or all of a branch is selected', () => {
    const { none, tree, branch, entries } = setUp(ORDERS);
    const some = none.with(entries('GET:a.example/orders/{}$'), true);

    expect(none.extentOf(tree.root)).toBe('none');
    expect(some.extentOf(branch('a.example', 'orders'))).toBe('some');
    expect(some.extentOf(branch('b.example'))).toBe('none');
    expect(none.withAll(branch('a.example'), true).extentOf(branch('a.example', 'orders'))).toBe(
      'all',
    );
    expect(some.count(tree.root)).toBe(1);
  });

  it('is immutable: each step returns a new selection', () => {
    const { none, tree } = setUp(ORDERS);

    none.withAll(tree.root, true).withAll(tree.root, false);

    expect(none.count(tree.root)).toBe(0);
  });

  it('selects only the reading endpoints of a branch', () => {
    const { none, branch, tree } = setUp(ORDERS);
    const reading = none.withAll(tree.root, true).withReading(branch('a.example'));

    expect(isReadOnly(reading, branch('a.example'))).toBe(true);
    expect(reading.count(branch('a.example'))).toBe(2);
    expect(isReadOnly(none, branch('a.example'))).toBe(false);
    expect(isReadOnly(reading.withAll(branch('a.example'), true), branch('a.example'))).toBe(false);
  });

  it('counts the entries that a selected open entry includes, and reports which one includes them', () => {
    const open = [
      'GET:a.example/orders',
      'GET:a.example/orders/open$',
      'POST:a.example/orders/open$',
    ];
    const { none, branch, entry, entries } = setUp(open);
    const selection = none.with(entries('GET:a.example/orders'), true);

    expect(String(selection.includedBy(entry('GET:a.example/orders/open$')))).toBe(
      'GET:a.example/orders',
    );
    expect(selection.includedBy(entry('POST:a.example/orders/open$'))).toBeUndefined();
    expect(selection.includedBy(entry('GET:a.example/orders'))).toBeUndefined();
    expect(selection.count(branch('a.example'))).toBe(2);
    expect(selection.isTicked(entry('GET:a.example/orders/open$'))).toBe(false);
  });

  it('does not count a named endpoint as part of a template, open or closed', () => {
    const { none, branch, entries } = setUp([
      'GET:a.example/users/{}',
      'GET:a.example/users/{}$',
      'GET:a.example/users/me$',
    ]);
    const selection = none.with(entries('GET:a.example/users/{}'), true);

    expect(selection.count(branch('a.example', 'users', 'me'))).toBe(0);
    expect(selection.count(branch('a.example', 'users', '{}'))).toBe(2);
  });

  describe('with a name', () => {
    const REPOS = [
      'GET:a.example/repos/{}/{}/issues$',
      'GET:a.example/users/{}$',
      'GET:a.example/users/me$',
    ];

    it('narrows the scopes below it', () => {
      const { none, branch, entry } = setUp(REPOS);
      const selection = none
        .withName(branch('a.example', 'repos', '{}'), 'acme')
        .withName(branch('a.example', 'repos', '{}', '{}'), 'site');

      expect(String(selection.scopeOf(entry('GET:a.example/repos/{}/{}/issues$')))).toBe(
        'GET:a.example/repos/acme/site/issues$',
      );
      expect(String(selection.scopeOf(entry('GET:a.example/users/{}$')))).toBe(
        'GET:a.example/users/{}$',
      );
    });

    it('narrows by the last name that was given', () => {
      const { none, branch, entry } = setUp(REPOS);
      const template = branch('a.example', 'users', '{}');
      const ada = none.withName(template, 'ada');
      const scopeOf = (selection: typeof ada) =>
        String(selection.scopeOf(entry('GET:a.example/users/{}$')));

      expect(scopeOf(ada)).toBe('GET:a.example/users/ada$');
      expect(scopeOf(ada.withName(template, 'bob'))).toBe('GET:a.example/users/bob$');
      expect(scopeOf(ada.withAll(template, true))).toBe('GET:a.example/users/ada$');
    });

    it('treats an empty name as any name', () => {
      const { none, branch, entry } = setUp(REPOS);
      const template = branch('a.example', 'users', '{}');
      const selection = none.withName(template, 'ada').withName(template, '');

      expect(String(selection.scopeOf(entry('GET:a.example/users/{}$')))).toBe(
        'GET:a.example/users/{}$',
      );
    });

    it.each([
      ['ada', undefined],
      ['a$a', undefined],
      ['{}', 'unspellable'],
      ['{id}', 'unspellable'],
      ['*', 'unspellable'],
      ['a/b', 'unspellable'],
      ['a b', 'unspellable'],
      ['..', 'unspellable'],
      ['a$', 'unspellable'],
      ['%61', 'unspellable'],
      ['ä', 'unspellable'],
      ['<img src=x onerror=alert(1)>', 'unspellable'],
      ['a'.repeat(600), undefined],
      ['me', 'endpoint'],
    ])('reports the problem of the name %j: %s', (name, problem) => {
      const { none, branch } = setUp(REPOS);
      const template = branch('a.example', 'users', '{}');

      expect(none.withName(template, name).problemOf(template)).toBe(problem);
    });

    it('has no scope for an entry below an invalid name, instead of a wider scope', () => {
      const { none, branch, entry, entries } = setUp(REPOS);
      const template = branch('a.example', 'users', '{}');
      const selection = none
        .with(entries('GET:a.example/users/{}$'), true)
        .withName(template, 'a/b');

      expect(selection.scopeOf(entry('GET:a.example/users/{}$'))).toBeUndefined();
      expect(selection.problem).toEqual({ branch: template, problem: 'unspellable' });
      const tooLong = selection.withName(template, 'a'.repeat(600));
      expect(tooLong.scopeOf(entry('GET:a.example/users/{}$'))).toBeUndefined();
    });

    it('ignores an invalid name if nothing is selected below it', () => {
      const { none, branch, entries } = setUp(REPOS);
      const selection = none
        .with(entries('GET:a.example/users/me$'), true)
        .withName(branch('a.example', 'users', '{}'), 'a/b');

      expect(selection.problem).toBeUndefined();
    });
  });
});
