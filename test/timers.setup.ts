import { vi } from 'vitest';

// For tests that move the time of the library.
vi.mock('../src/time/timers.ts', () => import('./live-timers.ts'));
