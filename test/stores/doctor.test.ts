import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { measureSkew } from '../../src/stores/doctor.ts';

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
    ['of the question', 0, 0],
    ['of the answer', ROUND_TRIP_MS, 0],
    ['just before the question', -1, 1],
    ['just after the answer', ROUND_TRIP_MS + 1, 1],
    ['long before the question', -60_000, 60_000],
    ['long after the answer', ROUND_TRIP_MS + 60_000, 60_000],
  ])(
    'counts only the time outside of the round trip: a server time %s',
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
