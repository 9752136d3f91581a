import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import packageJson from '../../package.json' with { type: 'json' };
import { VARIABLES } from '../../src/app/server/settings.ts';
import { newFolder, runInShell } from '../app/cli/support.ts';

const root = new URL('../../', import.meta.url);
const read = (name: string) => readFileSync(new URL(`examples/run/deploy/${name}`, root), 'utf8');
const FILES = globSync('*', { cwd: new URL('examples/run/deploy', root).pathname });

/** The tokenwright settings that a text names. */
const variablesIn = (text: string): string[] => text.match(/\bTOKENWRIGHT_\w+/g) ?? [];
const PROGRAM = `node_modules/tokenwright/${packageJson.bin.tokenwright.slice(2)}`;

describe('the deployment files', () => {
  it.each(FILES)('%s names only settings that exist', (file) => {
    expect(variablesIn(read(file)).filter((name) => !VARIABLES.includes(name))).toEqual([]);
  });

  it('name some settings, and an unknown one would be noticed (the control)', () => {
    expect(FILES.flatMap((file) => variablesIn(read(file))).length).toBeGreaterThan(6);
    expect(VARIABLES).not.toContain(variablesIn('TOKENWRIGHT_ACOUNTS=a')[0]);
  });

  it.each(['Dockerfile', 'tokenwright.service'])('%s starts the program of the package', (file) => {
    expect(read(file)).toContain(PROGRAM);
  });

  it('run the container as the user node, with the program as its first process', () => {
    const lines = read('Dockerfile').split('\n');

    expect(lines.lastIndexOf('USER node')).toBeGreaterThan(
      lines.findLastIndex((line) => line.startsWith('RUN')),
    );
    expect(lines).toContain(`ENTRYPOINT ["node", "${PROGRAM}"]`);
  });

  it.each(['tokens', 'database'])('mount exactly the secrets that %s of Compose reads', (name) => {
    const { services, secrets } = parse(read('compose.yaml'));
    const { environment, secrets: mounted } = services[name];
    const named = Object.values<string>(environment).flatMap(
      (text) => /^\/run\/secrets\/(.+)/.exec(text)?.[1] ?? [],
    );

    expect(named).toEqual(mounted);
    expect(Object.keys(secrets)).toEqual(expect.arrayContaining(mounted));
  });

  it('give Compose no secret but by file, and the service no folder to write but /data', () => {
    const { services } = parse(read('compose.yaml'));

    expect(read('compose.yaml')).not.toMatch(/\$\{|:\/\/\S*:/);
    expect(services.tokens.read_only).toBe(true);
    expect(services.tokens.volumes).toContain('data:/data');
  });

  const canBeOthers = process.getuid?.() === 0 && spawnSync('setpriv', ['--version']).status === 0;
  it.runIf(canBeOthers)('let the user of the image alone read the secrets of Compose', async () => {
    const folder = newFolder();
    const guide = readFileSync(new URL('docs/guides/deploy.md', root), 'utf8');
    const [, block = ''] = /^```bash\n(umask .*?)^```$/ms.exec(guide) ?? [];
    const script = block.replaceAll('npx tokenwright', 'tokenwright').replaceAll('sudo ', '');
    expect(await runInShell(`cd "$1" && set -e\n${script}`, folder)).toMatchObject({ code: 0 });
    chmodSync(folder, 0o755);

    const canRead = (user: number, file: string) => {
      const as = [`--reuid=${user}`, `--regid=${user}`, '--clear-groups', 'cat'];
      return spawnSync('setpriv', [...as, join(folder, file)]).status === 0;
    };
    for (const file of ['keys.json', 'accounts', 'store']) {
      expect([canRead(1000, file), canRead(1001, file)]).toEqual([true, false]);
    }
    expect(canRead(1000, 'database-password')).toBe(false);
  });

  it.each([
    [200, 0],
    [503, 1],
    [undefined, 1],
  ])(
    'end the health check of a service that answers %s with the exit code %i',
    async (status, code) => {
      const server = createServer((_, response) => response.writeHead(status ?? 500).end());
      await once(server.listen(0, '127.0.0.1'), 'listening');
      const { port } = server.address() as AddressInfo;
      onTestFinished(() => void server.close());
      if (status === undefined) server.close();
      const [, command = ''] = /^HEALTHCHECK [^[]*(\[.*\])$/m.exec(read('Dockerfile')) ?? [];
      const [, ...args] = JSON.parse(command) as string[];

      const env = { ...process.env, PORT: String(port) };
      const check = execFile(process.execPath, args, { env });
      expect(await once(check, 'exit')).toEqual([code, null]);
    },
  );

  const hasSystemd = spawnSync('systemd-analyze', ['--version']).status === 0;
  it.skipIf(!hasSystemd)('contain a unit that systemd accepts', () => {
    const file = `${newFolder()}/tokenwright.service`;
    const verify = (unit: string): string[] => {
      // Replaced by a user and a program that exist on this machine.
      const local = unit
        .replace(/^User=.*/m, 'User=daemon')
        .replace(/^ExecStart=\S+/m, 'ExecStart=/bin/true');
      writeFileSync(file, local);
      const { stderr } = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
      // It also reads the units that other packages of this machine add to the targets of ours.
      return stderr.split('\n').filter((line) => line.includes('tokenwright.service'));
    };

    expect(verify(read('tokenwright.service'))).toEqual([]);
    const misspelt = read('tokenwright.service').replace('ProtectHome=', 'ProtectHouse=');
    expect(verify(misspelt).join()).toContain('ProtectHouse');
    expect(verify(misspelt.replace('[Service]', '[Service')).length).toBeGreaterThan(0);
  });
});

describe('the manifests for Kubernetes', () => {
  const objects = parseAllDocuments(read('kubernetes.yaml')).map((each) => each.toJS());
  const [job, deployment, service, budget, policy] = objects;
  const pods = [job, deployment].map(({ spec }) => spec.template.spec);
  const containersOf = ({ initContainers = [], containers }: (typeof pods)[number]) => [
    ...initContainers,
    ...containers,
  ];
  const all = pods.flatMap(containersOf);
  const namesOf = (list: { name: string }[]) => list.map(({ name }) => name).sort();

  it('are a Job, a Deployment, and what belongs to its pods', () => {
    expect(objects.map(({ kind }) => kind)).toEqual([
      'Job',
      'Deployment',
      'Service',
      'PodDisruptionBudget',
      'NetworkPolicy',
    ]);
    const { labels } = deployment.spec.template.metadata;
    const [spread] = pods[1].topologySpreadConstraints;
    expect(service.spec.selector).toEqual(labels);
    for (const { matchLabels } of [
      deployment.spec.selector,
      budget.spec.selector,
      policy.spec.podSelector,
      spread.labelSelector,
    ]) {
      expect(matchLabels).toEqual(labels);
    }
    // The Service must not send calls to the pod of the Job.
    expect(job.spec.template.metadata.labels).not.toEqual(labels);
  });

  it('keep one pod while another is replaced', () => {
    const { replicas, strategy } = deployment.spec;

    expect(budget.spec.minAvailable).toBeLessThan(replicas);
    expect(strategy.rollingUpdate.maxUnavailable).toBe(0);
  });

  it('run commands that exist, each with the rights of the user node alone', () => {
    expect(all.map(({ args }) => args)).toEqual([
      ['store', 'migrate'],
      ['serve', '--check'],
      ['serve'],
    ]);
    for (const container of all) {
      expect(container.securityContext).toEqual({
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
      });
      expect(Object.keys(container.resources)).toEqual(['requests', 'limits']);
    }
    for (const { securityContext } of pods) {
      expect(securityContext).toMatchObject({ runAsNonRoot: true, runAsUser: 1000 });
    }
  });

  it('name only files that a volume of their pod brings', () => {
    for (const pod of pods) {
      const containers = containersOf(pod);
      for (const { volumeMounts, env } of containers) {
        expect(namesOf(volumeMounts)).toEqual(namesOf(pod.volumes));
        const paths: string[] = env.map(({ value }: { value: string }) => value);
        const folders: string[] = volumeMounts.map(
          ({ mountPath }: { mountPath: string }) => `${mountPath}/`,
        );
        for (const path of paths.filter((value) => /^\/(?!\/)/.test(value))) {
          expect(folders.filter((folder) => path.startsWith(folder))).toHaveLength(1);
        }
      }
    }
  });

  it('give secrets as files, and name ports that exist', () => {
    const [container] = pods[1].containers;
    const ports = namesOf(container.ports);

    expect(read('kubernetes.yaml')).not.toMatch(/:\/\/\S*:|stringData/);
    for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
      expect(ports).toContain(container[probe].httpGet.port);
    }
    expect(namesOf(service.spec.ports)).toEqual(ports);
    const open = policy.spec.ingress.flatMap(({ ports }: { ports: { port: string }[] }) => ports);
    expect(open.map(({ port }: { port: string }) => port).sort()).toEqual(ports);
  });

  it('probe addresses of the service', () => {
    const [container] = pods[1].containers;
    const probed = [container.livenessProbe, container.readinessProbe].map(
      ({ httpGet }) => httpGet.path,
    );

    expect(probed).toEqual(['/healthz', '/readyz']);
    expect(container.ports[0].containerPort).toBe(8787);
    // The service waits that long for its database before it listens.
    const { periodSeconds, failureThreshold } = container.startupProbe;
    expect(periodSeconds * failureThreshold).toBeGreaterThan(30);
  });
});
