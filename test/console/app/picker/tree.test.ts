import { describe, expect, it } from 'vitest';
import { chainOf, isTemplate, lineOf } from '../../../../src/console/app/picker/tree.ts';
import { setUp } from './support.ts';

describe('scopeTree', () => {
  it('has a branch for each host and each segment, those of a branch side by side', () => {
    const { tree, branch } = setUp([
      'GET:b.example/orders/{}$',
      'GET:a.example/orders$',
      'GET:b.example/orders$',
    ]);

    expect(tree.root.children.map(({ text }) => text)).toEqual(['a.example', 'b.example']);
    expect(lineOf(branch('b.example', 'orders', '{}')).map(({ text }) => text)).toEqual([
      'b.example',
      'orders',
      '{}',
    ]);
    const { start, end } = branch('b.example');
    expect(tree.entries.slice(start, end).map(({ scope }) => scope.path)).toEqual([
      'orders$',
      'orders/{}$',
    ]);
  });

  it('keeps the root of a host, and scopes with wildcards, at the host', () => {
    const { branch } = setUp(['GET:a.example/$', 'GET:a.example/orders$']);

    expect(branch('a.example').entries.map(({ scope }) => scope.path)).toEqual(['$']);
  });

  it('sorts methods as people list them: GET, POST, PUT, PATCH, DELETE, then others', () => {
    const methods = ['DELETE', 'PURGE', 'PATCH', 'GET', 'PUT', 'POST'];
    const { branch } = setUp(methods.map((method) => `${method}:a.example/orders$`));

    expect(branch('a.example', 'orders').entries.map(({ scope }) => scope.method)).toEqual([
      'GET',
      'POST',
      'PUT',
      'PATCH',
      'DELETE',
      'PURGE',
    ]);
  });

  it('takes names of Object.prototype for ordinary segments', () => {
    const { branch } = setUp(['GET:a.example/constructor/__proto__$']);

    expect(branch('a.example', 'constructor', '__proto__').entries).toHaveLength(1);
  });
});

describe('chainOf', () => {
  const { branch } = setUp([
    'GET:a.example/repos/{}/{}/issues$',
    'GET:a.example/repos/{}/{}/pulls$',
  ]);

  it('joins branches with nothing but one branch', () => {
    const chain = chainOf(branch('a.example', 'repos'));

    expect(chain.map(({ text }) => text)).toEqual(['repos', '{}', '{}']);
    expect(chain.map(isTemplate)).toEqual([false, true, true]);
  });

  it('does not join a host with what is below it', () => {
    expect(chainOf(branch('a.example')).map(({ text }) => text)).toEqual(['a.example']);
  });
});
