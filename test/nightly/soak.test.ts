import { expect, it } from 'vitest';
import { complaintOf, soak } from './soak.ts';

it('a service holds no more after many calls than before', { timeout: 60_000 }, async () => {
  expect(complaintOf(await soak(1000, { leaks: false }))).toBe('');
});

it('would notice one that keeps something of each call', { timeout: 60_000 }, async () => {
  expect(complaintOf(await soak(1000, { leaks: true }))).toContain('MiB more in use');
});
