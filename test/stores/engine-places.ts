// A place for the stores of a test, on each engine.
import { randomBytes } from 'node:crypto';
import { inject, onTestFinished } from 'vitest';
import type { EngineStore } from '../../src/ports/engine-store.ts';
import { openStore, prepareStore, type StoreEngine, type StorePlace } from './engines.ts';
import { newFile } from './sqlite/handles.ts';

const servers = inject('servers');

export interface EnginePlaces {
  readonly name: string;
  readonly isMissing: boolean;
  /** Creates a place that no other test uses. */
  newPlace(): Promise<StorePlace>;
}

export const ENGINES: readonly EnginePlaces[] = [
  { name: 'SQLite', isMissing: false, newPlace: () => placeOn('sqlite', newFile()) },
  onServer('PostgreSQL', 'postgres'),
  onServer('MariaDB', 'mariadb'),
  onServer('Redis', 'redis'),
  onServer('Redis Cluster', 'redisCluster'),
];

function onServer(name: string, engine: Exclude<StoreEngine, 'sqlite'>): EnginePlaces {
  const url = servers[engine];
  return { name, isMissing: url === undefined, newPlace: () => placeOn(engine, url as string) };
}

async function placeOn(engine: StoreEngine, url: string): Promise<StorePlace> {
  const place = { engine, url, name: `tokens_${randomBytes(8).toString('hex')}` };
  await prepareStore(place);
  return place;
}

/** Opens the store of a place, and closes it at the end of the test. */
export function opened(place: StorePlace): EngineStore {
  const { store, close } = openStore(place);
  onTestFinished(close);
  return store;
}
