import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { Metrics } from '../../src/cli/metrics.ts';
import { newFolder } from '../cli/support.ts';

const root = new URL('../../', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, root), 'utf8');
const page = read('docs/guides/monitor.md');
const alerts = read('examples/monitor/alerts.yaml');
const dashboard = read('examples/monitor/dashboard.json');

const metrics = await Metrics.open();
metrics.watch(() => ({ cache: { hits: 0, misses: 0 } }));
/** All names of metrics by their type, as the service writes them. */
const types = new Map(
  [...(await metrics.text()).matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [
    name,
    type,
  ]),
);
const ours = [...types].filter(([name]) => name.startsWith('tokenwright_'));
/** The metrics that a text asks for. */
const askedIn = (text: string): string[] =>
  (text.match(/\b(?:tokenwright|nodejs|process)_[a-z0-9_]+/g) ?? []).map((name) =>
    name.replace(/_bucket$/, ''),
  );

describe('the page about monitoring', () => {
  it('lists each metric of the service with its type, and no other', () => {
    const rows = [...page.matchAll(/^\| `(tokenwright_\w+)` \| (\w+) \|/gm)];

    expect(ours.length).toBeGreaterThan(8);
    expect(rows.map(([, name, type]) => [name, type]).sort()).toEqual([...ours].sort());
  });

  it.each([
    ['the page', page],
    ['the alerts', alerts],
    ['the dashboard', dashboard],
  ])('of which %s names only those that there are', (_, text) => {
    expect(askedIn(text).length).toBeGreaterThan(5);
    expect(askedIn(text).filter((name) => !types.has(name))).toEqual([]);
  });

  it('would not name another one unnoticed', () => {
    const changed = alerts.replace('tokenwright_sign_ins_total', 'tokenwright_signins_total');
    expect(askedIn(changed).filter((name) => !types.has(name))).toHaveLength(1);
  });
});

describe('the files to monitor with', () => {
  it('are rules with a summary and a severity each', () => {
    const { groups } = parse(alerts);
    expect(groups[0].rules.length).toBeGreaterThan(5);
    for (const { alert, labels, annotations } of groups[0].rules) {
      expect(alert).toMatch(/^Tokenwright[A-Z]\w+$/);
      expect(labels.severity).toMatch(/^(?:critical|warning)$/);
      expect(annotations.summary).toBeTypeOf('string');
    }
  });

  it('are panels that cover each other nowhere', () => {
    const { panels } = JSON.parse(dashboard);
    const places = panels.map(
      ({ gridPos: { x, y } }: { gridPos: Record<'x' | 'y', number> }) => `${x} ${y}`,
    );
    expect(new Set(places).size).toBe(panels.length);
    expect(new Set(panels.map(({ id }: { id: number }) => id)).size).toBe(panels.length);
  });

  const hasPromtool = spawnSync('promtool', ['--version']).status === 0;
  const check = (rules: string) => {
    const file = join(newFolder(), 'rules.yaml');
    writeFileSync(file, rules);
    return spawnSync('promtool', ['check', 'rules', file]).status;
  };

  it.skipIf(!hasPromtool)('are rules that Prometheus understands', () => {
    expect(check(alerts)).toBe(0);
    expect(check(alerts.replace('rate(', 'rat('))).not.toBe(0);
  });

  it.skipIf(!hasPromtool)('are panels whose questions Prometheus understands', () => {
    const { panels } = JSON.parse(dashboard);
    const asked: string[] = panels.flatMap(({ targets }: { targets: { expr: string }[] }) =>
      targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '5m')),
    );
    const rules = asked.map((expr, i) => ({ record: `panel:${i}`, expr }));

    // JSON is YAML too.
    expect(check(JSON.stringify({ groups: [{ name: 'panels', rules }] }))).toBe(0);
  });
});
