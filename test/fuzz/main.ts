// Fuzzes one surface: `node test/fuzz/main.ts <surface> <inputs> <seed> [worker] [workers]`. To repeat the
// block of a finding: `node test/fuzz/main.ts <surface> --block <block> <seed>`.
import { blocksOf, fuzz } from './fuzz.ts';
import { SUBJECTS, SURFACES, type SurfaceName } from './surfaces.ts';

// Millions of refusals are thrown, and nobody reads their stack traces.
Error.stackTraceLimit = 0;

const [name = '', inputs = '', ...rest] = process.argv.slice(2);
const isReplay = inputs === '--block';
const [block, seed, worker, workers] = (isReplay ? rest : ['0', ...rest]).map(Number);
if (!Object.hasOwn(SURFACES, name) || seed === undefined) {
  process.stderr.write(
    `give a surface (${Object.keys(SURFACES).join(', ')}), a number of inputs and a seed\n`,
  );
  process.exit(2);
}
const blocks = isReplay ? [block ?? 0] : blocksOf(Number(inputs), worker ?? 0, workers ?? 1);
const finding = await fuzz(SURFACES[name as SurfaceName](SUBJECTS), seed, blocks);
if (finding !== undefined) {
  process.stdout.write(`${finding.message}\n`);
  process.stdout.write(
    `reproduce: node test/fuzz/main.ts ${name} --block ${finding.block} ${seed}\n`,
  );
  process.exitCode = 1;
}
