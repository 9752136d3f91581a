import { describe, expect, it } from 'vitest';
import {
  branchesTo,
  chainOf,
  isTemplate,
} from '../../../../../src/app/console/page/picker/tree.ts';
import { setUp } from './support.ts';

describe('scopeTree', () => {
  it('has a branch for each host and each segment, and keeps the entries of a branch together', () => {
    const { tree, branch } = setUp([
      'GET:b.example/orders/{}$',
      'GET:a.example/orders$',
      'GET:b.example/orders$',
    ]);

    expect(tree.root.children.map(({ text }) => text)).toEqual(['a.example', 'b.example']);
    expect(branchesTo(branch('b.example', 'orders', '{}')).map(({ text }) => text)).toEqual([
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

  it('keeps the root path of a host at the host', () => {
    const { branch } = setUp(['GET:a.example/$', 'GET:a.example/orders$']);

    expect(branch('a.example').entries.map(({ scope }) => scope.path)).toEqual(['$']);
  });

  it('sorts methods in the order GET, POST, PUT, PATCH, DELETE, then any other', () => {
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

  it('treats names of Object.prototype as ordinary segments', () => {
    const { branch } = setUp(['GET:a.example/constructor/__proto__$']);

    expect(branch('a.example', 'constructor', '__proto__').entries).toHaveLength(1);
  });
});

describe('chainOf', () => {
  const { branch } = setUp([
    'GET:a.example/repos/{}/{}/issues$',
    'GET:a.example/repos/{}/{}/pulls$',
  ]);

  it('joins branches that contain only one branch', () => {
    const chain = chainOf(branch('a.example', 'repos'));

    expect(chain.map(({ text }) => text)).toEqual(['repos', '{}', '{}']);
    expect(chain.map(isTemplate)).toEqual([false, true, true]);
  });

  it('does not join a host with the branches below it', () => {
    expect(chainOf(branch('a.example')).map(({ text }) => text)).toEqual(['a.example']);
  });
});
