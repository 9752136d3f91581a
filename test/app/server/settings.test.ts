import { describe, expect, it } from 'vitest';
import { readSettings, SERVE_SETTINGS, serviceOptions } from '../../../src/app/server/settings.ts';

describe('readSettings', () => {
  it('accepts both ends of a range, and a password of eight characters', () => {
    const read = (flags: object, environment = {}) =>
      readSettings(SERVE_SETTINGS, flags, environment);

    expect(read({})).toMatchObject({ maxTokens: 10_000, maxScopes: 4096, audit: undefined });
    expect(read({ 'max-tokens': '1000000', 'max-scopes': '1' })).toMatchObject({
      maxTokens: 1_000_000,
      maxScopes: 1,
    });
    const environment = {
      TOKENWRIGHT_MAX_TOKENS: '1',
      TOKENWRIGHT_MAX_SCOPES: '4096',
      TOKENWRIGHT_AUDIT: '-',
      TOKENWRIGHT_ACCOUNTS_FILE: 'accounts',
      TOKENWRIGHT_ACCOUNTS: 'ada:12345678',
    };
    expect(read({}, environment)).toMatchObject({
      maxTokens: 1,
      maxScopes: 4096,
      audit: '-',
      accountFile: 'accounts',
      accounts: [{ username: 'ada', password: '12345678' }],
    });
  });

  it('reads what may be derived from a token, and how many ended ones are kept', () => {
    const read = (flags: object, environment = {}) =>
      serviceOptions(readSettings(SERVE_SETTINGS, flags, environment)).quotas;
    const environment = { TOKENWRIGHT_MAX_ENDED: '10000000', TOKENWRIGHT_MAX_DERIVED: '10000' };

    expect(read({})).toMatchObject({ derivedPerRoot: 100, endedPerAccount: undefined });
    const few = read({ 'max-ended': '1', 'max-derived': '1' });
    expect(few).toMatchObject({ derivedPerRoot: 1, endedPerAccount: 1 });
    const many = read({}, environment);
    expect(many).toMatchObject({ derivedPerRoot: 10_000, endedPerAccount: 10_000_000 });
    for (const flags of [{ 'max-ended': '0' }, { 'max-ended': '10000001' }]) {
      expect(() => read(flags)).toThrow('--max-ended (TOKENWRIGHT_MAX_ENDED) must be');
    }
    for (const flags of [{ 'max-derived': '0' }, { 'max-derived': '10001' }]) {
      expect(() => read(flags)).toThrow('--max-derived (TOKENWRIGHT_MAX_DERIVED) must be');
    }
  });

  it('reads lifetimes with a unit, and refuses more than a year', () => {
    const read = (flags: object, environment = {}) =>
      serviceOptions(readSettings(SERVE_SETTINGS, flags, environment)).lifetime;

    expect(read({})).toEqual({ defaultSeconds: 31_536_000, maxSeconds: 31_536_000 });
    expect(read({ 'max-ttl': '90d' })).toEqual({
      defaultSeconds: 7_776_000,
      maxSeconds: 7_776_000,
    });
    expect(read({ 'default-ttl': '1' })).toEqual({ defaultSeconds: 1, maxSeconds: 31_536_000 });
    const environment = { TOKENWRIGHT_MAX_TTL: '365d', TOKENWRIGHT_DEFAULT_TTL: '365d' };
    expect(read({}, environment)).toEqual(read({}));
    expect(read({ 'max-ttl': '12h', 'default-ttl': '720m' })).toEqual({
      defaultSeconds: 43_200,
      maxSeconds: 43_200,
    });
    for (const wrong of ['0', '0d', '366d', '31536001', '-1', '1.5', '1w', 'ever']) {
      expect(() => read({ 'max-ttl': wrong }), wrong).toThrow(
        '--max-ttl (TOKENWRIGHT_MAX_TTL) must be from 1s to 365d, as whole seconds, or like 90d',
      );
    }
    expect(() => read({ 'max-ttl': '12h' }, { TOKENWRIGHT_DEFAULT_TTL: '721m' })).toThrow(
      '--default-ttl (TOKENWRIGHT_DEFAULT_TTL) must not be more than --max-ttl',
    );
  });
});
