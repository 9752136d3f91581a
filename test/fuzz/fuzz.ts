// Runs a surface over blocks of inputs. Each block starts from a fresh state and depends only on the seed
// and its number, so that a finding can be reproduced from its block alone.
import { Random } from './random.ts';
import type { Surface } from './surfaces.ts';

/** Inputs per block; all of them are tried on one service or set of scopes. */
export const BLOCK = 1000;

export interface Finding {
  readonly block: number;
  readonly message: string;
}

/** Tries blocks of inputs until one breaks a rule. */
export async function fuzz(
  surface: Surface,
  seed: number,
  blocks: Iterable<number>,
): Promise<Finding | undefined> {
  for (const block of blocks) {
    try {
      await tryBlock(surface, new Random(seed, block));
    } catch (error) {
      const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
      return { block, message };
    }
  }
  return undefined;
}

async function tryBlock(surface: Surface, random: Random): Promise<void> {
  const attempt = await surface(random);
  for (let i = 0; i < BLOCK; i++) {
    const tried = attempt(random);
    if (tried !== undefined) await tried;
  }
}

/** The blocks of a run for one of several workers: every `workers`-th one. */
export function* blocksOf(inputs: number, worker: number, workers: number): Generator<number> {
  for (let block = worker; block * BLOCK < inputs; block += workers) yield block;
}
