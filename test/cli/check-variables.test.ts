import { describe, expect, it } from 'vitest';
import { checkVariables } from '../../src/cli/check-variables.ts';
import { SERVE_SETTINGS } from '../../src/cli/settings.ts';
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
  ])('ignores %s=%s', (name, value) => {
    expect(() => checkVariables({ [name]: value })).not.toThrow();
  });
});
