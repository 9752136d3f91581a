// Runs a surface over blocks of inputs. Each block begins anew and follows from the seed and its
// number alone, so that a finding can be had again without what came before it.
import { Random } from './random.ts';
import type { Surface } from './surfaces.ts';

/** So many inputs are tried on one service, or whatever the surface asks. */
export const BLOCK = 1000;

export interface Finding {
  readonly block: number;
  readonly message: string;
}

/** Tries blocks of inputs, until one shows something wrong. */
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

/** Every so-many-th block of a run, for one of several workers. */
export function* blocksOf(inputs: number, worker: number, workers: number): Generator<number> {
  for (let block = worker; block * BLOCK < inputs; block += workers) yield block;
}
