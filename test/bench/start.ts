// How a bench starts: it says what it needs, ends if that is missing, and runs the parts that it is asked for.
import { existsSync } from 'node:fs';
import { loadavg, totalmem } from 'node:os';
import { delimiter, join } from 'node:path';
import { isInstalled } from '../servers.ts';
import { ROOT } from './page.ts';

const onPath = (name: string) =>
  (process.env['PATH'] ?? '').split(delimiter).some((folder) => existsSync(join(folder, name)));

const PROGRAMS = {
  PostgreSQL: { get: 'apt-get install postgresql', isThere: () => isInstalled('postgres') },
  MariaDB: { get: 'apt-get install mariadb-server', isThere: () => isInstalled('mariadb') },
  Redis: { get: 'apt-get install redis-server', isThere: () => isInstalled('redis') },
  wrk: { get: 'apt-get install wrk', isThere: () => onPath('wrk') },
  taskset: { get: 'apt-get install util-linux', isThere: () => onPath('taskset') },
  dist: { get: 'npm run build', isThere: () => existsSync(join(ROOT, 'dist/index.js')) },
} as const;

export interface Needs {
  readonly minutes: number;
  readonly gigabytes: number;
  readonly programs?: readonly (keyof typeof PROGRAMS)[];
}

/** Says what the bench needs. Ends the process if something is not there. */
export function needs({ minutes, gigabytes, programs = [] }: Needs): void {
  const all = [
    `about ${minutes} ${minutes === 1 ? 'minute' : 'minutes'}`,
    `${gigabytes} GB of memory`,
    ...programs.map((name) => `${name} (${PROGRAMS[name].get})`),
    'a quiet machine',
  ];
  console.error(`needs ${all.join(', ')}`);
  const missing: string[] = programs.filter((name) => !PROGRAMS[name].isThere());
  if (totalmem() < gigabytes * 2 ** 30) missing.push(`${gigabytes} GB of memory`);
  if (missing.length > 0) {
    console.error(`missing: ${missing.join(', ')}`);
    process.exit(1);
  }
  const [load = 0] = loadavg();
  if (load > 0.5) console.error(`this machine is busy (load ${load.toFixed(1)})`);
}

/** The parts that the arguments name, or all of them. Ends the process for a name that none has. */
export function askedParts<Name extends string>(names: readonly Name[]): readonly Name[] {
  const asked = process.argv.slice(2).filter((arg) => !arg.startsWith('--'));
  const unknown = asked.find((name) => !names.includes(name as Name));
  if (unknown !== undefined) {
    console.error(`no part is named ${unknown}; there are ${names.join(', ')}`);
    process.exit(1);
  }
  return asked.length > 0 ? (asked as Name[]) : names;
}

export const isWriting = process.argv.includes('--write');
