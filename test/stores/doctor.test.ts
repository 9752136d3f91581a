import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { measureSkew } from '../../src/stores/shared/doctor.ts';

const ASKED = Date.parse('2100-01-01T00:00:00.000Z');
const ROUND_TRIP_MS = 1900;

describe('measureSkew', () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['Date'], now: ASKED });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it.each([
    ['at the request', 0, 0],
    ['at the response', ROUND_TRIP_MS, 0],
    ['just before the request', -1, 1],
    ['just after the response', ROUND_TRIP_MS + 1, 1],
    ['long before the request', -60_000, 60_000],
    ['long after the response', ROUND_TRIP_MS + 60_000, 60_000],
  ])(
    'counts only time outside the round trip, with a server time %s',
    async (_, offset, expected) => {
      const { answer, skewMs } = await measureSkew(
        async () => {
          vi.setSystemTime(ASKED + ROUND_TRIP_MS);
          return ASKED + offset;
        },
        (time) => time,
      );

      expect({ answer, skewMs }).toEqual({ answer: ASKED + offset, skewMs: expected });
    },
  );
});
