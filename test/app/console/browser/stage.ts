// An account with tokens in every state.
import { ScopeCatalog, type WordedScope } from '../../../../src/scope/index.ts';
import { MemoryTokenStore } from '../../../../src/stores/memory/index.ts';
import { type ManualClock, manualClock } from '../../../../src/testing/index.ts';
import { type Opened, type OpenOptions, openConsole } from './support.ts';

export const CODE = 'code.acme.example';
export const ORDERS = 'orders.acme.example';
export const BILLING = 'billing.acme.example';

const REPO = ['owner', 'repo'];

/** The endpoints of an invented company, with what people call them. */
const WORDED: readonly WordedScope[] = [
  ...wordsOf('Repositories', `${CODE}/repos/{}/{}$`, REPO, {
    GET: 'Read a repository',
    PATCH: 'Change a repository',
    DELETE: 'Delete a repository',
  }),
  ...wordsOf('Issues', `${CODE}/repos/{}/{}/issues$`, REPO, {
    GET: 'List issues',
    POST: 'Open an issue',
  }),
  ...wordsOf('Releases', `${CODE}/repos/{}/{}/releases$`, REPO, {
    GET: 'List releases',
    POST: 'Publish a release',
  }),
  ...wordsOf('Orders', `${ORDERS}/orders$`, [], { GET: 'List orders', POST: 'Place an order' }),
  ...wordsOf('Orders', `${ORDERS}/orders/{}$`, ['order'], {
    GET: 'Read an order',
    PATCH: 'Change an order',
    DELETE: 'Cancel an order',
  }),
  ...wordsOf('Orders', `${ORDERS}/exports`, [], { GET: 'Export all orders' }).map((words) => ({
    ...words,
    deprecated: true,
  })),
  ...wordsOf('Invoices', `${BILLING}/invoices$`, [], {
    GET: 'List invoices',
    POST: 'Write an invoice',
  }),
  ...wordsOf('Invoices', `${BILLING}/invoices/{}$`, ['invoice'], { GET: 'Read an invoice' }),
  ...wordsOf('Refunds', `${BILLING}/refunds$`, [], { POST: 'Pay money back' }),
];

export const ACME: readonly string[] = WORDED.map(({ scope }) => String(scope));

const ABOUT: Readonly<Record<string, string>> = {
  Repositories: 'Code and its settings',
  Issues: 'Bugs, ideas and other work to do',
  Releases: 'Versions that customers can download',
  Orders: 'What customers have bought',
  Invoices: 'What customers have to pay',
  Refunds: 'Money that goes back to customers',
};

function wordsOf(
  tag: string,
  place: string,
  segments: readonly string[],
  summaries: Readonly<Record<string, string>>,
): readonly WordedScope[] {
  return Object.entries(summaries).map(([method, summary]) => ({
    scope: `${method}:${place}`,
    summary,
    tag,
    segments,
  }));
}

/** A service that has words for its endpoints, and presets. */
export function wordedService(): NonNullable<OpenOptions['service']> {
  const catalog = ScopeCatalog.from(WORDED);
  const permissions = catalog.permissions().map(({ tag, domain, read, write }) => ({
    name: tag,
    description: ABOUT[tag],
    domain,
    levels: { read, write },
  }));
  const presets = [
    { name: 'Release bot', scopes: [`*:${CODE}/repos/{}/{}/releases$`], ttlSeconds: 30 * DAY },
  ];
  return { catalog: ScopeCatalog.from(catalog, { permissions }), presets };
}

const DAY = 86_400;
export const LONG_NAME =
  'Integration tests of the payments team in Frankfurt, until the migration of the old ledger has ended';

export interface Stage extends Opened {
  /** The ids of the tokens, by their names. */
  readonly ids: ReadonlyMap<string, string>;
}

/** Opens the console of an account with a history of 200 days. */
export async function openStage(options: OpenOptions = {}): Promise<Stage> {
  const clock = manualClock(new Date(Date.now() - (200 * DAY + 60) * 1000));
  const service = {
    store: new MemoryTokenStore({ clock }),
    catalog: ScopeCatalog.from(ACME),
    clock,
    limits: true,
    usage: true,
    ...options.service,
  };
  const opened = await openConsole({ ...options, service });
  const { tokens } = opened;
  const ids = new Map<string, string>();
  const issue = async (
    name: string,
    days: number,
    scopes: readonly string[],
    more: object = {},
  ) => {
    const token = await tokens.issue({
      account: 'ada',
      name,
      scopes,
      ttlSeconds: days * DAY,
      ...more,
    });
    ids.set(name, token.id);
    // Different times fix the order in the list.
    clock.advance(1);
    return token;
  };
  const build = await issue('Nightly build', 208, [
    `GET:${CODE}/*`,
    `POST:${CODE}/repos/{}/{}/releases$`,
  ]);
  await issue('Migration of the ledger', 300, [`*:${BILLING}/*`, `*:${ORDERS}/*`, `*:${CODE}/*`]);
  await issue('Spreadsheet of last summer', 360, [`GET:${ORDERS}/orders$`]);
  await tokens.patch('ada', ids.get('Migration of the ledger') ?? '', { suspended: true });
  clock.advance(150 * DAY);
  await issue('Holiday cover', 30, [`GET:${ORDERS}/orders$`]);
  await issue('Laptop that was lost', 90, [`GET:${ORDERS}/*`]);
  const deploy = await issue('Deploy bot', 290, [
    `*:${CODE}/repos/acme/shop`,
    `GET:${ORDERS}/orders$`,
  ]);
  clock.advance(48 * DAY);
  const child = await tokens.derive(deploy.value, {
    name: 'Deploy of release 4.2',
    scopes: [`GET:${CODE}/repos/acme/shop$`],
    ttlSeconds: 7 * DAY,
  });
  ids.set('Deploy of release 4.2', child.id);
  clock.advance(1);
  await issue(LONG_NAME, 30, [`GET:${BILLING}/*`]);
  await issue('מדפסת תוויות', 30, [`GET:${ORDERS}/exports`]);
  const report = await issue(
    'Monthly report',
    90,
    [`GET:${BILLING}/invoices$`, `GET:${BILLING}/invoices/{}$`],
    {
      metadata: { team: 'finance', ticket: 'OPS-1742' },
      limits: {
        addresses: ['192.0.2.0/24', '2001:db8::/32'],
        uses: 10_000,
        rate: { uses: 100, seconds: 60 },
      },
    },
  );
  const used = [
    [build, CODE, '/repos/acme/shop', 41],
    [build, CODE, '/repos/acme/shop/issues', 12],
    [deploy, CODE, '/repos/acme/shop/releases', 3],
    [report, BILLING, '/invoices', 128],
  ] as const;
  for (const [{ value }, domain, target, uses] of used) {
    const request = { method: 'GET', domain, target };
    for (let use = 0; use < uses; use += 1) {
      await tokens.verify(value, request, { address: '192.0.2.7' });
    }
  }
  await tokens.revoke('ada', ids.get('Laptop that was lost') ?? '');
  clock.advance(2 * DAY);
  if (options.takesRequests) {
    const first = await issue('Release assistant', 30, [`GET:${CODE}/*`], { createdBy: 'grace' });
    ids.set('Elevation', await elevationOf(opened, first.value, clock));
  }
  return { ...opened, ids };
}

/** Adds rights to a token of somebody, as an agent of another account asks for them. */
async function elevationOf(
  { tokens, requests }: Opened,
  value: string,
  clock: ManualClock,
): Promise<string> {
  const client = 'Deploy assistant';
  const { deviceCode, userCode } = await requests().open({
    client,
    scopes: [`POST:${CODE}/repos/{}/{}/releases$`],
    purpose: 'Publish 4.3',
    elevate: value,
  });
  await requests().approve('ada', userCode, { by: 'grace' });
  const { token } = await requests().poll(deviceCode, { client });
  const { id = '' } = token ?? {};
  await tokens.patch('ada', id, { name: 'Elevation' });
  clock.advance(1);
  return id;
}

/** Opens the page again, before the sign-in and without anything that was shown before. */
export async function restart({ page, url }: Opened): Promise<void> {
  await page.unrouteAll({ behavior: 'ignoreErrors' });
  await page.goto('about:blank');
  await page.goto(url);
}
