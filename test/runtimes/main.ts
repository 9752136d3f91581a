// Runs all parts, with SQLite or without, and says which were done.
import { PARTS } from './program.ts';
import { WITH_SQLITE, WITHOUT_SQLITE } from './stores.ts';

async function main(): Promise<void> {
  const parts = [...PARTS, ...(process.argv[2] === 'sqlite' ? WITH_SQLITE : WITHOUT_SQLITE)];
  for (const [, run] of parts) await run();
  console.log(`done: ${parts.map(([name]) => name).join(' ')}`);
}

main();
