// Lets the canary sit in every test: one in which something secret was shown fails.
import { afterEach } from 'vitest';
import { begin, takeFindings } from './canary.ts';

begin();

afterEach(() => {
  const [finding] = takeFindings();
  // Told by its kind, so that a failing test does not show it once more.
  if (finding !== undefined) throw new Error(`${finding.channel} shows a ${finding.kind}`);
});
