import { expect, it } from 'vitest';
import { complaintOf, soak } from './soak.ts';

it('a service answers mixed calls correctly and leaks neither memory nor handles', {
  timeout: 60_000,
}, async () => {
  expect(complaintOf(await soak(1000, { leaks: false }))).toBe('');
});

it('the soak run detects a service that leaks memory on each call (the control)', {
  timeout: 60_000,
}, async () => {
  expect(complaintOf(await soak(1000, { leaks: true }))).toContain('MiB more in use');
});
