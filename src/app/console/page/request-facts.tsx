import type { WireRequest } from '../../../http/wire.ts';
import type { ShownToken } from './api.ts';
import { Foreign } from './controls/foreign.tsx';
import { durationText } from './controls/time.tsx';
import { hrefOf } from './router.ts';
import { nameOf } from './shown-token.ts';
import { TEXTS } from './texts.ts';
import { Fact, Moment } from './token-facts.tsx';
import { MayDo } from './words.tsx';

/** Who asks, from where, when and why. All that the program says itself is shown as its words. */
export function RequestFacts({ request }: { readonly request: WireRequest }) {
  const { client, purpose, address, createdAt, expire, ttl, state } = request;
  return (
    <section class="card" aria-label={TEXTS.approve.about}>
      <dl class="fact-list">
        <Fact label={TEXTS.approve.client} icon="user">
          <b>
            <Foreign text={client} />
          </b>
          <span class="muted exact">{TEXTS.approve.clientHint}</span>
        </Fact>
        {purpose !== undefined && (
          <Fact label={TEXTS.approve.purpose} icon="info">
            <Foreign text={purpose} />
          </Fact>
        )}
        <Fact label={TEXTS.approve.address} icon="shield">
          {address === undefined ? TEXTS.approve.unknownAddress : <span dir="ltr">{address}</span>}
        </Fact>
        <Fact label={TEXTS.approve.asked} icon="plus">
          <Moment seconds={createdAt} />
        </Fact>
        {state === 'pending' && (
          <Fact label={TEXTS.approve.until} icon="clock">
            <Moment seconds={expire} />
          </Fact>
        )}
        {(state === 'approved' || state === 'redeemed') && (
          <Fact label={TEXTS.approve.lifetime} icon="clock">
            {durationText(ttl)}
          </Fact>
        )}
      </dl>
    </section>
  );
}

/** The token that asks for more, who made it, and what it may do now. */
export function FirstToken({ line }: { readonly line: readonly ShownToken[] }) {
  const [first, ...above] = line;
  if (first === undefined) return null;
  const { createdBy, scopes } = first;
  return (
    <section class="card stack">
      <div>
        <h2>{TEXTS.approve.first}</h2>
        <p class="hint">{TEXTS.approve.firstHint}</p>
      </div>
      <dl class="fact-list">
        <Fact label={TEXTS.token.name} icon="key">
          <TokenName token={first} />
        </Fact>
        <Fact label={TEXTS.token.createdBy} icon="user">
          {createdBy === undefined ? TEXTS.list.notRecorded : <Foreign text={createdBy} />}
        </Fact>
        {above.length > 0 && (
          <Fact label={TEXTS.token.parent} icon="branch">
            <ul>
              {above.map((token) => (
                <li key={token.id}>
                  <TokenName token={token} />
                </li>
              ))}
            </ul>
          </Fact>
        )}
        <Fact label={TEXTS.list.rights} icon="shield">
          <MayDo scopes={scopes} />
        </Fact>
      </dl>
    </section>
  );
}

/** Bearers choose the names of the tokens that they derive. */
function TokenName({ token }: { readonly token: ShownToken }) {
  return (
    <a href={hrefOf({ screen: 'token', id: token.id })}>
      <Foreign text={nameOf(token)} />
    </a>
  );
}
