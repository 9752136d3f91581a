import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { Metrics } from '../../src/app/server/metrics/metrics.ts';
import { newFolder } from '../app/cli/support.ts';

const root = new URL('../../', import.meta.url);
const read = (name: string) => readFileSync(new URL(name, root), 'utf8');
const page = read('docs/guides/monitor.md');
const alerts = read('examples/run/monitor/alerts.yaml');
const dashboard = read('examples/run/monitor/dashboard.json');

const metrics = await Metrics.open();
metrics.watch(() => ({ cache: { hits: 0, misses: 0 } }));
/** The type of each metric, by name, as the service writes them. */
const types = new Map(
  [...(await metrics.text()).matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [
    name,
    type,
  ]),
);
const ours = [...types].filter(([name]) => name.startsWith('tokenwright_'));
/** The metrics that a text names. */
const namedIn = (text: string): string[] =>
  (text.match(/\b(?:tokenwright|nodejs|process)_[a-z0-9_]+/g) ?? []).map((name) =>
    name.replace(/_bucket$/, ''),
  );

describe('the metrics of the service', () => {
  it('are listed with their type on the page about monitoring, and no others are', () => {
    const rows = [...page.matchAll(/^\| `(tokenwright_\w+)` \| (\w+) \|/gm)];

    expect(ours.length).toBeGreaterThan(8);
    expect(rows.map(([, name, type]) => [name, type]).sort()).toEqual([...ours].sort());
  });

  it.each([
    ['the page', page],
    ['the alerts', alerts],
    ['the dashboard', dashboard],
  ])('include every metric that %s names', (_, text) => {
    expect(namedIn(text).length).toBeGreaterThan(5);
    expect(namedIn(text).filter((name) => !types.has(name))).toEqual([]);
  });

  it('do not include a misspelled name (the control)', () => {
    const changed = alerts.replace('tokenwright_sign_ins_total', 'tokenwright_signins_total');
    expect(namedIn(changed).filter((name) => !types.has(name))).toHaveLength(1);
  });
});

describe('the monitoring files', () => {
  it('give each alert a summary and a severity', () => {
    const { groups } = parse(alerts);
    expect(groups[0].rules.length).toBeGreaterThan(5);
    for (const { alert, labels, annotations } of groups[0].rules) {
      expect(alert).toMatch(/^Tokenwright[A-Z]\w+$/);
      expect(labels.severity).toMatch(/^(?:critical|warning)$/);
      expect(annotations.summary).toBeTypeOf('string');
    }
  });

  it('give each panel its own position and id', () => {
    const { panels } = JSON.parse(dashboard);
    const positions = panels.map(
      ({ gridPos: { x, y } }: { gridPos: Record<'x' | 'y', number> }) => `${x} ${y}`,
    );
    expect(new Set(positions).size).toBe(panels.length);
    expect(new Set(panels.map(({ id }: { id: number }) => id)).size).toBe(panels.length);
  });

  const hasPromtool = spawnSync('promtool', ['--version']).status === 0;
  const check = (rules: string) => {
    const file = join(newFolder(), 'rules.yaml');
    writeFileSync(file, rules);
    return spawnSync('promtool', ['check', 'rules', file]).status;
  };

  it.skipIf(!hasPromtool)('contain alert rules that Prometheus accepts', () => {
    expect(check(alerts)).toBe(0);
    expect(check(alerts.replace('rate(', 'rat('))).not.toBe(0);
  });

  it.skipIf(!hasPromtool)('contain panel queries that Prometheus accepts', () => {
    const { panels } = JSON.parse(dashboard);
    const queries: string[] = panels.flatMap(({ targets }: { targets: { expr: string }[] }) =>
      targets.map(({ expr }) => expr.replaceAll('$__rate_interval', '5m')),
    );
    const rules = queries.map((expr, i) => ({ record: `panel:${i}`, expr }));

    // promtool reads YAML, and JSON is YAML.
    expect(check(JSON.stringify({ groups: [{ name: 'panels', rules }] }))).toBe(0);
  });
});
