import { describe, expect, it } from 'vitest';
import { checkVariables, quoteWarnings } from '../../../src/app/cli/command.ts';
import { readSettings, SERVE_SETTINGS, VARIABLES } from '../../../src/app/server/settings.ts';
import { run } from './support.ts';

describe('checkVariables', () => {
  it('accepts every variable in the help for serve, and rejects misspelled ones', async () => {
    const { stdout } = await run(['serve', '--help']);
    const names = stdout.match(/TOKENWRIGHT_\w+/g) ?? [];
    const other = ['COPY_FROM', 'COPY_TO', 'PASSWORD', 'TOKEN', 'URL', 'USER'].map(
      (name) => `TOKENWRIGHT_${name}`,
    );

    // PORT is the only setting without the prefix.
    expect(names).toHaveLength(SERVE_SETTINGS.length - 1);
    for (const name of [...names, ...other]) {
      expect(() => checkVariables({ [name]: 'x' }), name).not.toThrow();
      expect(() => checkVariables({ [`${name}X`]: 'x' }), name).toThrow(
        'no command knows the variable',
      );
    }
  });

  it.each([
    ['TOKENWRIGHT_ACOUNTS', ''],
    ['MY_TOKENWRIGHT_ACOUNTS', 'x'],
    ['TOKENWRIGHTS', 'x'],
    // Kubernetes sets these for a service named `tokenwright` or `tokenwright-api`.
    ['TOKENWRIGHT_PORT', 'tcp://10.0.0.1:8787'],
    ['TOKENWRIGHT_SERVICE_HOST', '10.0.0.1'],
    ['TOKENWRIGHT_SERVICE_PORT', '8787'],
    ['TOKENWRIGHT_SERVICE_PORT_HTTP', '8787'],
    ['TOKENWRIGHT_PORT_8787_TCP', 'tcp://10.0.0.1:8787'],
    ['TOKENWRIGHT_PORT_8787_TCP_ADDR', '10.0.0.1'],
    ['TOKENWRIGHT_API_PORT', 'tcp://10.0.0.1:8787'],
    ['TOKENWRIGHT_API_SERVICE_HOST', '10.0.0.1'],
    ['TOKENWRIGHT_PORT', 'tcp://[fd00::1]:8787'],
    // Docker sets these for a link with the alias `tokenwright`.
    ['TOKENWRIGHT_NAME', '/web/tokenwright'],
    ['TOKENWRIGHT_ENV_NODE_VERSION', '24'],
  ])('ignores %s=%s', (name, value) => {
    expect(() => checkVariables({ [name]: value })).not.toThrow();
  });
});

/** What Kubernetes and Docker set for a service of this name. */
function linksOf(service: string): Readonly<Record<string, string>> {
  const name = service.toUpperCase().replaceAll('-', '_');
  const port = `${name}_PORT_9090_TCP`;
  return {
    [`${name}_SERVICE_HOST`]: '10.0.0.9',
    [`${name}_SERVICE_PORT`]: '9090',
    [`${name}_SERVICE_PORT_METRICS`]: '9090',
    [`${name}_PORT`]: 'tcp://10.0.0.9:9090',
    [port]: 'tcp://10.0.0.9:9090',
    [`${port}_PROTO`]: 'tcp',
    [`${port}_PORT`]: '9090',
    [`${port}_ADDR`]: '10.0.0.9',
    [`${name}_NAME`]: `/web/${service}`,
    [`${name}_ENV_TOKENWRIGHT_PORT`]: '1',
  };
}

/** The names of services whose links could be taken for a setting: each beginning of its variable. */
function servicesLike(variable: string): string[] {
  const words = variable.toLowerCase().split('_');
  return words.map((_, count) => words.slice(0, count + 1).join('-'));
}

describe('the links of a service that is named like a setting', () => {
  const defaults = readSettings(SERVE_SETTINGS, {}, {});

  it.each(VARIABLES)('leave all settings as they are: %s', (variable) => {
    for (const service of servicesLike(variable)) {
      const links = linksOf(service);

      expect(() => checkVariables(links), service).not.toThrow();
      expect(readSettings(SERVE_SETTINGS, {}, links), service).toEqual(defaults);
    }
  });

  it.each(['tcp://10.0.0.9:9090', 'udp://10.0.0.9:53', 'sctp://[fd00::9]:9090'])(
    'are no port for metrics: %s',
    (TOKENWRIGHT_METRICS_PORT) => {
      const { metricsPort } = readSettings(['metricsPort'], {}, { TOKENWRIGHT_METRICS_PORT });

      expect(metricsPort).toBeUndefined();
    },
  );

  it.each<[NodeJS.ProcessEnv, object]>([
    [{ TOKENWRIGHT_METRICS_PORT: '9464' }, { metricsPort: { port: 9464 } }],
    [{ TOKENWRIGHT_METRICS_PORT: 'tcp:9464' }, { metricsPort: { host: 'tcp', port: 9464 } }],
    [{ PORT: '9090' }, { port: 9090 }],
    [{ TOKENWRIGHT_STORE: 'tcp://10.0.0.9:9090' }, { store: 'tcp://10.0.0.9:9090' }],
    [{ TOKENWRIGHT_HOST: '10.0.0.9' }, { host: '10.0.0.9' }],
  ])('do not hide a setting that is meant: %j', (environment, settings) => {
    expect(readSettings(SERVE_SETTINGS, {}, environment)).toMatchObject(settings);
  });

  it.each(['tcp', 'tcp://', 'tcp://10.0.0.9', 'http://10.0.0.9:9090', '10.0.0.9:99999'])(
    'do not hide a mistake: %s',
    (TOKENWRIGHT_METRICS_PORT) => {
      expect(() => readSettings(SERVE_SETTINGS, {}, { TOKENWRIGHT_METRICS_PORT })).toThrow(
        '--metrics-port (TOKENWRIGHT_METRICS_PORT) must be a port from 0 to 65535',
      );
    },
  );
});

describe('quoteWarnings', () => {
  it.each(VARIABLES.filter((name) => name !== 'TOKENWRIGHT_PASSWORD'))(
    'names %s if it is still in quotes, and never its value',
    (name) => {
      const expected = [
        `${name} begins and ends with a quote, which counts as part of it: remove both`,
      ];

      expect(quoteWarnings({ [name]: '"ada:canary"' })).toEqual(expected);
      expect(quoteWarnings({ [name]: "'ada:canary'" })).toEqual(expected);
      expect(quoteWarnings({ [name]: '""' })).toEqual(expected);
      for (const meant of ['ada:canary', '"ada:canary', `"ada:canary'`, '"', 'a"b"', '', undefined])
        expect(quoteWarnings({ [name]: meant })).toEqual([]);
    },
  );

  it('leaves a password alone, which may have quotes of its own', () => {
    expect(quoteWarnings({ TOKENWRIGHT_PASSWORD: '"canary"' })).toEqual([]);
  });

  it('are printed before the error of the same variable', async () => {
    const { stderr, code } = await run(['serve'], { PORT: '"8787"' });

    expect(stderr).toMatch(
      /^tokenwright: warning: PORT begins and ends with a quote.*\ntokenwright: --port \(PORT\) must be/,
    );
    expect(code).toBe(2);
  });
});
