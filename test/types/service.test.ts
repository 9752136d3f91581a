import { describe, expect, it } from 'vitest';
import { completionsAt, diagnosticsOf, hoverAt } from './support.ts';

const ENTRIES = ['GET:shop.example/orders', 'POST:shop.example/orders/open'];

/** A service and a guard with a catalog, and one without. */
function head(entries: readonly string[]): string {
  return `import { bearerGuard, expressGuard } from './src/http/index.ts';
import { MemoryTokenStore, TokenService } from './src/index.ts';
import { defineCatalog, ScopeSet, type TypedCatalog } from './src/scope/index.ts';
declare const request: Request;
declare const value: string;
const options = { store: new MemoryTokenStore(), keys: [], prefix: 'tw' };
const tokens = new TokenService({ ...options, catalog: defineCatalog(${JSON.stringify(entries)}) });
const untyped = new TokenService(options);
const guard = bearerGuard({ tokens, domain: 'shop.example' });
void [request, value, untyped, guard, expressGuard, ScopeSet];
`;
}

const LINES = head(ENTRIES).split('\n').length;

/** Every position in the API that takes a scope. */
const POSITIONS: readonly ((scope: string) => string)[] = [
  (scope) => `void tokens.issue({ account: 'ada', scopes: ['${scope}'] });`,
  (scope) => `void tokens.issue({ account: 'ada', scopes: ['*:*/*', '${scope}'] });`,
  (scope) => `void tokens.modify('ada', value, { scopes: ['${scope}'] });`,
  (scope) => `void tokens.patch('ada', value, { scopes: ['${scope}'] });`,
  (scope) => `void tokens.patch('ada', value, { addScopes: ['${scope}'] });`,
  (scope) => `void tokens.list({ account: 'ada', scope: '${scope}' });`,
  (scope) => `void tokens.listAll({ account: 'ada', scope: '${scope}' });`,
  (scope) => `void tokens.verify(value, { scope: '${scope}' });`,
  (scope) => `void tokens.verifySync(value, { scope: '${scope}' });`,
  (scope) => `void tokens.allows(value, { scope: '${scope}' });`,
  (scope) => `void guard(request, { scope: '${scope}' });`,
  (scope) => `void expressGuard(guard, { scope: '${scope}' });`,
];

/** The errors that the compiler reports for each line. */
function messagesAbout(lines: readonly string[], entries: readonly string[] = ENTRIES): string[] {
  const text = head(entries) + lines.join('\n');
  const diagnostics = diagnosticsOf({ 'asked.ts': text }, { types: ['node'], skipLibCheck: true });
  return lines.map((_, index) =>
    diagnostics
      .filter(({ line }) => line === LINES + index)
      .map(({ message }) => message)
      .join('\n'),
  );
}

describe('a service with a typed catalog', () => {
  it('refuses a misspelled scope in every position, with one line that names the nearest entry', () => {
    const lines = POSITIONS.map((lineWith) => lineWith('GET:shop.example/ordrs'));

    for (const [index, message] of messagesAbout(lines).entries()) {
      expect(message, lines[index]).toContain(`'"GET:shop.example/ordrs"' is not assignable`);
      expect(message, lines[index]).toContain(`Did you mean '"GET:shop.example/orders"'?`);
      expect(message).not.toMatch(/AskedScope|\n/);
      expect(message.length).toBeLessThan(300);
    }
  });

  it('asks for the target of a request that was given a path, and not for a mark', () => {
    const request = "{ method: 'GET', domain: 'shop.example', path: '/orders' }";
    const lines = [
      `void untyped.verify(value, ${request});`,
      `void tokens.verify(value, ${request});`,
      `ScopeSet.from([]).allows(${request});`,
      `const asked = ${request}; void untyped.verify(value, asked);`,
    ];
    const messages = messagesAbout(lines);

    for (const message of messages.slice(0, 3)) expect(message).toContain("'path' does not exist");
    expect(messages[3]).toContain("Property 'target' is missing");
    expect(messages.join('')).not.toContain('unambiguous');
    const right = lines.map((line) => line.replace('path:', 'target:'));
    expect(messagesAbout(right).join('')).toBe('');
  });

  it('has the name of a declared type in messages, in place of its entries', () => {
    const [message = ''] = messagesAbout([
      `type ShopScope = ${ENTRIES.map((entry) => `'${entry}'`).join(' | ')}; declare const shop: TypedCatalog<ShopScope>; void new TokenService({ ...options, catalog: shop }).issue({ scopes: [] });`,
    ]);

    expect(message).toContain("Property 'account' is missing");
    expect(message).toContain("'IssueInput<ShopScope>'");
    expect(message).not.toContain('shop.example');
  });

  it('accepts an entry in every position', () => {
    const lines = POSITIONS.map((lineWith) => lineWith('GET:shop.example/orders'));

    expect(messagesAbout(lines).join('')).toBe('');
  });

  it.each(POSITIONS.map((lineWith) => lineWith('|')))(
    'completes the entries in an editor: %s',
    (line) => {
      expect(completionsAt(head(ENTRIES) + line)).toEqual(ENTRIES);
    },
  );

  it('completes nothing without a typed catalog (the control)', () => {
    const line = "void untyped.issue({ account: 'ada', scopes: ['|'] });";

    expect(completionsAt(head(ENTRIES) + line)).toEqual([]);
  });

  it('shows the entries in a hover, and not how they are computed', () => {
    const hover = hoverAt(`${head(ENTRIES)}tokens.|verify(value, { scope: '${ENTRIES[0]}' });`);

    expect(hover).toContain(`need: Need<"${ENTRIES[0]}" | "${ENTRIES[1]}">`);
    expect(hover).not.toContain('AskedScope');
  });

  it('shows strings in a hover without a typed catalog', () => {
    const hover = hoverAt(`${head(ENTRIES)}untyped.|issue({ account: 'ada', scopes: [value] });`);

    expect(hover).toContain('(input: IssueInput<string>): Promise<IssuedToken>');
    expect(hover).not.toContain('AskedScope');
  });

  it('can have 1500 entries, of which a message names only a few', () => {
    const entries = Array.from({ length: 1500 }, (_, i) => `GET:d.example/users/{}/things${i}$`);
    const [good, bad = ''] = messagesAbout(
      [
        "void tokens.issue({ account: 'ada', scopes: ['GET:d.example/users/7/things7$'] });",
        "void tokens.issue({ account: 'ada', scopes: ['GET:d.example/users/7/thing7$'] });",
      ],
      entries,
    );

    expect(good).toBe('');
    expect(bad).toContain(`'"GET:d.example/users/7/thing7$"' is not assignable`);
    expect(bad).toContain('more ...');
    expect(bad.length).toBeLessThan(500);
  });
});
