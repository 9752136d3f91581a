import type { ShownToken } from './api.ts';
import { exactTime } from './controls/time.tsx';
import type { AskedLimits } from './limits-draft.ts';
import { limitTexts } from './limits-text.ts';
import { nameOf } from './shown-token.ts';
import { TEXTS } from './texts.ts';

/** The facts of a token that can change, apart from its scopes. */
export interface Facts
  extends Pick<ShownToken, 'name' | 'expire' | 'state' | 'pending' | 'metadata'> {
  readonly limits?: AskedLimits;
}

interface ChangedFact {
  readonly label: string;
  readonly from: string;
  readonly to: string;
}

/** Shows the differences between two versions of a token. Renders nothing if there are none. */
export function ChangedFacts({ before, after }: { readonly before: Facts; readonly after: Facts }) {
  const changed = changedFacts(before, after);
  if (changed.length === 0) return null;
  return (
    <dl class="changed">
      {changed.map(({ label, from, to }) => (
        <div key={label}>
          <dt>{label}</dt>
          <dd>
            <del dir="auto">{from}</del> → <ins dir="auto">{to}</ins>
          </dd>
        </div>
      ))}
    </dl>
  );
}

export function changedFacts(before: Facts, after: Facts): readonly ChangedFact[] {
  const [from, to] = [textsOf(before), textsOf(after)];
  return from.flatMap(([label, text], index) => {
    const next = to[index]?.[1] ?? '';
    return text === next ? [] : [{ label, from: text, to: next }];
  });
}

function textsOf(facts: Facts) {
  const { expire, state, pending, metadata, limits = {} } = facts;
  const { addresses, uses, rate } = limitTexts(limits);
  return [
    [TEXTS.token.name, nameOf(facts)],
    [TEXTS.token.expires, exactTime(expire)],
    [TEXTS.token.state, TEXTS.states[state]],
    [TEXTS.token.value, pending ? TEXTS.token.valuePending : TEXTS.token.valueSettled],
    [TEXTS.newToken.addresses, addresses ?? TEXTS.edit.noLimit],
    [TEXTS.newToken.uses, uses ?? TEXTS.edit.noLimit],
    [TEXTS.newToken.rate, rate ?? TEXTS.edit.noLimit],
    [TEXTS.token.metadata, metadata === undefined ? '' : JSON.stringify(metadata)],
  ] as const;
}
