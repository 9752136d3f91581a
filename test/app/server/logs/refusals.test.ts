import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { refusalWarnings } from '../../../../src/app/server/logs/refusals.ts';
import { forge, K2, SCOPE, setUp } from '../../../support.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const NEED = { scope: SCOPE };

async function watched() {
  const lines: string[] = [];
  const { tokens } = setUp({ onEvent: refusalWarnings((line) => lines.push(line)) });
  const { id, value } = await tokens.issue({ account: 'a', scopes: [SCOPE] });
  return { tokens, id, value, lines };
}

describe('warnings about refused values', () => {
  it.each<[detail: string, setting: string, make: (id: string) => string]>([
    ['unknown_key', '--keys', (id) => forge(id, { key: K2 })],
    ['bad_tag', '--keys', (id) => forge(id, { key: { ...K2, kid: 'k1' } })],
    ['other_prefix', '--prefix', (id) => forge(id, { prefix: 'other' })],
  ])('name %s and the setting, once a minute', async (detail, setting, make) => {
    const { tokens, id, lines } = await watched();
    const refuse = () => tokens.introspect(make(id));

    for (let i = 0; i < 3; i++) await refuse();
    expect(lines).toEqual([expect.stringContaining(`(${detail})`)]);
    expect(lines[0]).toContain(setting);
    vi.advanceTimersByTime(60_000);
    await refuse();
    expect(lines).toHaveLength(2);
  });

  it('are not written for what callers get wrong, nor for values that are accepted (the control)', async () => {
    const { tokens, id, value, lines } = await watched();

    await tokens.verify(id, NEED);
    await tokens.verify(`${value}x`, NEED);
    await tokens.verify(value, NEED);
    await tokens.verify(value, { scope: 'DELETE:shop.example/orders' });
    expect(lines).toEqual([]);
  });
});
