import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ScopeSet } from '../../../src/scope/index.ts';
import { runs } from '../../laws.ts';
import { asForm, exchangeForm, setUp } from '../support.ts';

const oauth = { issuer: 'https://auth.example', exchange: true };
const HOSTS = ['a.example', 'b.example', 'x.a.example'];
const scope = fc
  .tuple(
    fc.constantFrom('GET', 'POST', '*'),
    fc.constantFrom(...HOSTS, '*', '*.a.example'),
    fc.constantFrom('*', '$', 'x', 'x/y', 'x/{}', 'x/y$'),
  )
  .map(([method, host, path]) => `${method}:${host}/${path}`);
const scopes = fc.uniqueArray(scope, { minLength: 1, maxLength: 5 });
const targets = fc.uniqueArray(fc.constantFrom(...HOSTS), { maxLength: 3 });

describe('an exchange', () => {
  it('equals a derivation, within its parent and its targets', async () => {
    let granted = 0;
    const law = fc.asyncProperty(
      scopes,
      fc.option(scopes, { nil: undefined }),
      targets,
      async (held, asked, hosts) => {
        fc.pre(asked !== undefined || hosts.length > 0);
        const { call, tokens } = setUp({ oauth, catalog: null });
        const { value } = await tokens.issue({ account: 'ada', scopes: held });
        const form = new URLSearchParams(exchangeForm(value, { scope: asked?.join(' ') }));
        for (const host of hosts) form.append('resource', `https://${host}:8443/mcp?x=1`);

        const { status, body } = await call('POST', '/oauth/token', {
          as: null,
          ...asForm(String(form)),
        });

        const onTargets = ScopeSet.from(hosts.map((host) => `*:${host}/*`));
        const wanted = hosts.length === 0 ? ScopeSet.from(asked ?? []) : onTargets;
        const meant =
          hosts.length > 0 && asked !== undefined ? onTargets.intersection(asked) : wanted;
        const derived = await tokens
          .derive(value, { scopes: meant.toArray(), ttlSeconds: 3600 })
          .catch(() => undefined);
        expect([status, body['scope']]).toEqual(
          derived === undefined ? [400, undefined] : [200, derived.scopes.join(' ')],
        );
        if (derived === undefined) {
          expect(body['error']).toBe('invalid_scope');
          return;
        }
        granted += 1;
        const got = String(body['scope']).split(' ');
        expect(ScopeSet.from(held).missing(got)).toEqual([]);
        if (hosts.length > 0) expect(onTargets.missing(got)).toEqual([]);
      },
    );

    await fc.assert(law, runs());
    expect(granted).toBeGreaterThan(0);
  });
});
