import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
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
    .filter((name) => !['install', 'ci', 'run', 'publish'].includes(name));

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
    const { build, ...others } = jobs;

    expect(build?.permissions).toEqual({ contents: 'read' });
    expect(JSON.stringify(build?.steps)).toContain('npm install --ignore-scripts');
    for (const { steps } of Object.values(others)) {
      const used = steps.flatMap(({ uses }) => uses?.split('@')[0] ?? []);
      expect(used).not.toContain('actions/checkout');
      const run = steps.map((step) => step.run ?? '').join('\n');
      expect(run).not.toMatch(/\bnpm (?!publish )|\bnpx\b|\bnode\b/);
    }
    const commands = jobs['publish']?.steps.flatMap(({ run }) => run ?? []);
    expect(commands).toEqual([
      'npm publish ./tokenwright-*.tgz --provenance --access public --ignore-scripts',
    ]);
    const identities = Object.entries(jobs).filter(([, job]) => 'id-token' in job.permissions);
    expect(identities.map(([name]) => name)).toEqual(['publish']);
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
