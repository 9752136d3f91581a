import { describe, expect, it } from 'vitest';
import { firstCallOf } from '../../../../src/app/console/page/new-token-draft.ts';

describe('firstCallOf', () => {
  it('prefers a call that reads and has no placeholder', () => {
    const call = firstCallOf([
      'DELETE:shop.example/orders$',
      'GET:shop.example/orders/{}$',
      'GET:shop.example/orders/open$',
    ]);

    expect(call?.command).toContain("'https://shop.example/orders/open'");
    expect(call?.isTemplate).toBe(false);
  });

  it('marks a call with a placeholder', () => {
    expect(firstCallOf(['GET:shop.example/orders/{}$'])?.isTemplate).toBe(true);
  });

  it.each([
    ['POST:shop.example/orders$', '--request POST '],
    ['HEAD:shop.example/orders$', '--head '],
    ['*:shop.example/*', "'https://shop.example/'"],
    ['GET:shop.example/$', "'https://shop.example/'"],
  ])('calls %s with %s', (scope, part) => {
    expect(firstCallOf([scope])?.command).toContain(part);
  });

  it('lets the shell read the value, so that no command contains it', () => {
    expect(firstCallOf(['GET:shop.example/orders$'])?.command).toMatch(
      /^read -rs TOKEN && curl .*\$TOKEN/,
    );
  });

  it('calls the service itself if it answers the calls of its example', () => {
    const call = firstCallOf(['GET:shop.example/orders/{}$'], 'http://127.0.0.1:8787/example');

    expect(call?.command).toContain("'http://127.0.0.1:8787/example/orders/…'");
  });

  it('returns undefined for scopes without a specific host', () => {
    expect(firstCallOf(['*:*/*', 'GET:*.example/orders'])).toBeUndefined();
  });
});
