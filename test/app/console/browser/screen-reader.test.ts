// What a screen reader gets of each screen: landmarks, headings, names, states and live regions. The
// expected trees are in the folder next to this file; `vitest -u` updates them.
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { ORDERS, openStage, type Stage, wordedService } from './stage.ts';
import { STATES, STATES_IN_WORDS, STATES_OF_REQUESTS, showState } from './states.ts';
import { hasChromium } from './support.ts';

const SHOWN = [
  'sign-in',
  'sign-in, errors at fields',
  'list',
  'list, selected',
  'new, one resource',
  'new, errors at fields',
  'value',
  'token, used',
  'token, not allowed',
  'token, revoke',
  'token, narrow',
  'review',
];

/** The tree, without the ids, values and times that differ in each run. */
async function treeOf({ page, ids }: Stage): Promise<string> {
  let tree = await page.locator('body').ariaSnapshot();
  for (const id of ids.values()) tree = tree.replaceAll(id, 'ID');
  return `${tree
    .replaceAll(/acme_1\w{8}…/g, 'MASKED')
    .replaceAll(/acme_1\w{20,}/g, 'VALUE')
    .replaceAll(/\b[0-9A-Za-z]{6}…/g, 'MASKED')
    .replaceAll(/\b(?=[0-9A-Za-z]*\d)[0-9A-Za-z]{22}\b/g, 'ID')
    .replaceAll(/[A-Z][a-z]{2} \d{1,2}, \d{4}(?:, \d{1,2}:\d\d\s[AP]M)?/g, 'DATE')
    .replaceAll(/\b\d{4}-\d\d-\d\d(?:T[\d:.]+Z?)?/g, 'DATE')
    .replaceAll(/\d+ (?:second|minute)s? ago/g, 'NOW')
    .replaceAll(/in \d+ minutes/g, 'SOON')}\n`;
}

async function expectTree(stage: Stage, states: typeof STATES, name: string): Promise<void> {
  const state = states.find((one) => one.name === name);
  if (state === undefined) throw new Error(`there is no state ${name}`);
  await showState(stage, state);
  const file = `${name.replaceAll(/[^a-z0-9]+/g, '-')}.txt`;
  await expect(await treeOf(stage)).toMatchFileSnapshot(join(import.meta.dirname, 'trees', file));
}

describe.skipIf(!hasChromium)('a screen reader', () => {
  let stage: Stage;
  beforeAll(async () => {
    stage = await openStage();
  });
  afterAll(() => stage.close());

  it.each(SHOWN)('gets the landmarks, names and states of the screen: %s', async (name) => {
    await expectTree(stage, STATES, name);
  });

  it.each([
    'permissions, one resource',
    'permissions, custom',
    'permissions, found',
    'token, in words',
  ])('gets them of the screen: %s', async (name) => {
    const worded = await openStage({ service: wordedService() });
    onTestFinished(worded.close);
    await expectTree(worded, STATES_IN_WORDS, name);
  });

  it.each([
    'approve, wrong code',
    'approve, hostile',
    'approve, less',
    'approve, nothing selected',
    'approve, approved',
    'list, elevation',
    'token, elevation',
  ])('gets them of the screen: %s', async (name) => {
    const asking = await openStage({ service: wordedService(), takesRequests: true });
    onTestFinished(asking.close);
    await expectTree(asking, STATES_OF_REQUESTS, name);
  });

  it('gets the mixed state of partly selected checkboxes', async () => {
    const state = STATES.find((one) => one.name === 'new, one resource');
    await showState(stage, state as (typeof STATES)[number]);
    const { page, context } = stage;
    const session = await context.newCDPSession(page);

    const { nodes } = await session.send('Accessibility.getFullAXTree');
    const stateOf = (wanted: string) =>
      nodes
        .filter(({ role, name }) => role?.value === 'checkbox' && name?.value === wanted)
        .map(
          ({ properties = [] }) => properties.find(({ name }) => name === 'checked')?.value.value,
        );

    expect(stateOf('All hosts, everything below')).toEqual(['mixed']);
    expect(stateOf('/orders, everything below')).toEqual(['mixed']);
    expect(stateOf(`GET /orders (${ORDERS})`)).toEqual(['true']);
    expect(stateOf(`POST /orders (${ORDERS})`)).toEqual(['false']);
  });

  it('finds an empty live region before anything is announced', async () => {
    const { page, url } = stage;
    await page.goto(`${url}#/`);

    const live = page.locator('.toast[role="status"]');
    expect(await live.count()).toBe(1);
    expect(await live.textContent()).toBe('');
  });

  it('gets the name of each screen as the title of the page', async () => {
    const { page, url, ids } = stage;
    const screens = {
      Tokens: '#/',
      'New token': '#/new',
      Review: '#/review',
      'Deploy bot': `#/token/${ids.get('Deploy bot')}`,
    };
    for (const [name, hash] of Object.entries(screens)) {
      await page.goto(url + hash);
      await expect.poll(() => page.title()).toBe(`${name} · Access tokens · Acme`);
      expect(await page.getByRole('heading', { level: 1 }).allTextContents()).toEqual([name]);
    }
  });
});
