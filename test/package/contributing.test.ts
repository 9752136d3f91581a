import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import packageJson from '../../package.json' with { type: 'json' };

const root = new URL('../..', import.meta.url).pathname;
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

const text = read('CONTRIBUTING.md');
const WORKFLOWS = globSync('.github/workflows/*.yml', { cwd: root });

/** The scripts that a text calls; `test` and `start` need no `run`. */
const scriptsIn = (document: string): string[] =>
  [...document.matchAll(/\bnpm (?:run )?([a-z]+(?::[a-z]+)*)/g)]
    .map(([, name = '']) => name)
    .filter((name) => !['install', 'ci', 'run', 'publish', 'pack'].includes(name));

describe('CONTRIBUTING.md', () => {
  it('names each script of package.json', () => {
    const named = [...text.matchAll(/`(?:npm (?:run )?)?([a-z]+(?::[a-z]+)*)\b/g)].map(
      ([, name]) => name,
    );

    expect(Object.keys(packageJson.scripts).filter((name) => !named.includes(name))).toEqual([]);
  });

  it('names only scripts that exist', () => {
    const known = Object.keys(packageJson.scripts);

    expect(scriptsIn(text).length).toBeGreaterThan(10);
    expect(scriptsIn(text).filter((name) => !known.includes(name))).toEqual([]);
  });

  it('links to files that exist', () => {
    const links = [...text.matchAll(/\]\(([^)#]+)/g)].map(([, file = '']) => file);

    expect(links.length).toBeGreaterThan(3);
    expect(links.filter((file) => !existsSync(join(root, file)))).toEqual([]);
  });

  it('names source files that exist', () => {
    const named = [...text.matchAll(/`(?:src\/)?([\w/{},-]+\.ts)`/g)].map(([, file = '']) => file);
    const isMissing = (file: string) =>
      globSync(`{src/,}${file}`, { cwd: root }).length <
      (/\{(.*)\}/.exec(file)?.[1] ?? '').split(',').length;

    expect(named.length).toBeGreaterThan(25);
    expect(named.filter(isMissing)).toEqual([]);
    expect(isMissing('access/nowhere.ts')).toBe(true);
  });
});

describe('the workflows', () => {
  it.each(WORKFLOWS)('%s runs only scripts that exist, and pins actions to a commit', (file) => {
    const { jobs } = parse(read(file)) as {
      readonly jobs: Record<string, { readonly steps: { uses?: string; run?: string }[] }>;
    };
    const steps = Object.values(jobs).flatMap((job) => job.steps);
    const actions = steps.flatMap(({ uses }) => uses ?? []);
    const called = steps.flatMap(({ run = '' }) => scriptsIn(run));

    expect(actions.length).toBeGreaterThan(0);
    expect(actions.filter((action) => !/^[\w-]+\/[\w-]+@[0-9a-f]{40}$/.test(action))).toEqual([]);
    expect(called.length).toBeGreaterThan(0);
    expect(called.filter((name) => !Object.keys(packageJson.scripts).includes(name))).toEqual([]);
  });

  it('publish only when started by hand, from main', () => {
    const release = parse(read('.github/workflows/release.yml'));

    expect(Object.keys(release.on)).toEqual(['workflow_dispatch']);
    expect(release.permissions).toEqual({});
    expect(release.jobs.publish.if).toContain('refs/heads/main');
    expect(release.jobs.publish.permissions['id-token']).toBe('write');
  });

  it('give the publishing identity only to a job that runs neither our code nor our tools', () => {
    interface Job {
      readonly permissions: Readonly<Record<string, string>>;
      readonly steps: readonly { readonly uses?: string; readonly run?: string }[];
    }
    const { jobs } = parse(read('.github/workflows/release.yml')) as {
      readonly jobs: Readonly<Record<string, Job>>;
    };
    const { build, test, ...others } = jobs;

    for (const job of [build, test]) expect(job?.permissions).toEqual({ contents: 'read' });
    for (const { steps } of Object.values(others)) {
      const used = steps.flatMap(({ uses }) => uses?.split('@')[0] ?? []);
      expect(used).not.toContain('actions/checkout');
      const run = steps.map((step) => step.run ?? '').join('\n');
      expect(run).not.toMatch(/\bnpm (?!publish )|\bnpx\b|\bnode\b/);
    }
    const commands = jobs['publish']?.steps.flatMap(({ run }) => run ?? []);
    expect(commands).toEqual([
      expect.stringContaining('sha512sum --check'),
      'npm publish ./tokenwright-*.tgz --provenance --access public --ignore-scripts',
    ]);
    const identities = Object.entries(jobs).filter(([, job]) => 'id-token' in job.permissions);
    expect(identities.map(([name]) => name)).toEqual(['publish']);
  });
});

describe('the release', () => {
  interface Job {
    readonly needs?: string | readonly string[];
    readonly outputs?: Readonly<Record<string, string>>;
    readonly steps: readonly {
      readonly id?: string;
      readonly uses?: string;
      readonly run?: string;
      readonly env?: Readonly<Record<string, string>>;
    }[];
  }
  const { jobs } = parse(read('.github/workflows/release.yml')) as {
    readonly jobs: Readonly<Record<'build' | 'test' | 'publish' | 'release', Job>>;
  };
  const commandsOf = ({ steps }: Job) => steps.flatMap(({ run }) => run ?? []);
  /** The command lines that a script runs, with those of the scripts that it calls. */
  const linesOf = (script: string): string[] => {
    const line = (packageJson.scripts as Readonly<Record<string, string>>)[script] ?? '';
    return [line, ...scriptsIn(line).flatMap(linesOf)];
  };
  const setsOf = (lines: readonly string[]) =>
    lines.flatMap((line) =>
      [...line.matchAll(/run\.cjs ([\w ]*)--/g)].flatMap(([, sets = '']) =>
        sets.split(' ').filter(Boolean),
      ),
    );

  it('is built and packed with the tools of the build alone', () => {
    const lines = commandsOf(jobs.build).flatMap((line) => scriptsIn(line).flatMap(linesOf));

    expect(commandsOf(jobs.build)).toContain('npm install --ignore-scripts');
    expect(lines.join()).toMatch(/tsup.*npm pack --ignore-scripts|npm pack --ignore-scripts.*tsup/);
    expect(setsOf(lines)).toEqual([]);
    expect(lines.join()).not.toMatch(/vitest|tsc|biome|knip|attw|publint/);
    // Control: what checks and tests needs more.
    expect(setsOf(linesOf('check'))).toContain('check');
    expect(setsOf(linesOf('test:packed'))).toContain('test');
  });

  it('is tested as the tarball that was built, which no test job builds again', () => {
    const commands = commandsOf(jobs.test);
    const packed = read('test/package/packed.ts');

    expect(jobs.test.needs).toBe('build');
    expect(commands).toContain('npm run test:packed -- tokenwright-*.tgz');
    expect(commands).toContain('npm install --ignore-scripts');
    expect(packed).toContain("'check:built'");
    expect(packed).toContain("'test/run.ts', 'built'");
    expect([packed, ...linesOf('check:built')].join()).not.toMatch(/run build|tsup/);
    // The hash is taken before anything is installed.
    const hashed = jobs.test.steps.findIndex(({ id }) => id === 'tested');
    const installed = jobs.test.steps.findIndex(({ run }) => run?.startsWith('npm') === true);
    expect(hashed).toBeLessThan(installed);
    expect(jobs.test.steps[hashed]?.run).toContain('sha512sum');
  });

  it.each(['publish', 'release'] as const)('is the same file when it comes to %s', (name) => {
    const { needs, steps } = jobs[name];
    const compared = steps.findIndex(({ run }) => run?.includes('sha512sum --check') === true);
    const used = steps.findIndex(({ run }) => /^(?:npm publish|gh release)/.test(run ?? ''));

    expect(needs).toEqual(expect.arrayContaining(['build', 'test']));
    expect(jobs.build.outputs?.['sha512']).toContain('steps.packed.outputs.sha512');
    expect(jobs.test.outputs?.['sha512']).toContain('steps.tested.outputs.sha512');
    expect(steps[compared]?.env).toEqual({
      BUILT: expect.stringContaining('needs.build.outputs.sha512'),
      TESTED: expect.stringContaining('needs.test.outputs.sha512'),
    });
    expect(compared).toBeGreaterThan(0);
    expect(compared).toBeLessThan(used);
  });

  const compare = commandsOf(jobs.publish).find((line) => line.includes('sha512sum')) ?? '';

  it.each([
    ['the file that was built and tested', 'content', {}, 0],
    ['another file', 'changed', {}, 1],
    ['a file that was not tested', 'content', { TESTED: '' }, 1],
    ['a file of which nothing is known', 'content', { BUILT: '', TESTED: '' }, 1],
    ['another file, which was tested', 'changed', { TESTED: 'changed' }, 1],
  ])('is compared: %s', (_, content, named, code) => {
    const folder = mkdtempSync(join(tmpdir(), 'tokenwright-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'tokenwright-1.0.0.tgz'), content);
    const hashOf = (text: string) =>
      text === '' ? '' : createHash('sha512').update(text).digest('hex');
    const { BUILT, TESTED } = { BUILT: 'content', TESTED: 'content', ...named };

    const env = { PATH: process.env['PATH'], BUILT: hashOf(BUILT), TESTED: hashOf(TESTED) };
    // As GitHub runs it.
    const { status } = spawnSync('bash', ['-e', '-c', compare], { cwd: folder, env });

    expect(status).toBe(code);
  });

  it('installs its tools without running them, but the Node that fetches itself so', () => {
    expect(read('.dev/run.cjs')).toContain("if (set !== 'node') options.push('--ignore-scripts')");
  });
});

describe('the lock files', () => {
  const locks = globSync('{,.dev/*/,test/*/}package-lock.json', { cwd: root });

  it.each(locks)('%s names a hash for each package, and no host', (file) => {
    const { packages } = JSON.parse(read(file)) as {
      readonly packages: Readonly<Record<string, { readonly integrity?: string }>>;
    };
    const bare = Object.entries(packages).filter(([name, { integrity }]) => name && !integrity);

    expect(locks.length).toBeGreaterThan(6);
    expect(bare.map(([name]) => name)).toEqual([]);
    // npm takes the packages from the registry of whoever installs them.
    expect(read(file)).not.toMatch(/"resolved": "https?:/);
  });
});

describe('the tests', () => {
  it('are run once: a retry would hide a fault that comes seldom', () => {
    const files = globSync('test/**/*.ts', { cwd: root }).filter(
      (file) => !/node_modules|^test.api/.test(file),
    );
    const isRepeated = (file: string) => /\b(?:retry|repeats): *[\d{]/.test(read(file));

    expect(files.length).toBeGreaterThan(250);
    expect(files.filter(isRepeated)).toEqual([]);
  });
});

describe('the issue forms', () => {
  it.each(globSync('.github/ISSUE_TEMPLATE/[!c]*.yml', { cwd: root }))(
    '%s points security reports to SECURITY.md',
    (file) => {
      const { name, description, body } = parse(read(file));

      expect([typeof name, typeof description]).toEqual(['string', 'string']);
      expect(JSON.stringify(body[0])).toContain('SECURITY.md');
    },
  );
});
