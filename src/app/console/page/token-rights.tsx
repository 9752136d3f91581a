import type { WireUsage } from '../../../http/wire.ts';
import { Time } from './controls/time.tsx';
import { type RightHost, type RightLeaf, rightsTree, summaryOf } from './rights.ts';
import { LANGUAGE, TEXTS } from './texts.ts';

/** With more endpoints than this, hosts are closed at first. */
const OPEN_ENDPOINTS = 60;

export interface TokenRightsProps {
  readonly scopes: readonly string[];
  /** Absent if use is not recorded. */
  readonly usage: WireUsage | undefined;
}

/** What a token may do, by host and path, and how much of it is used. */
export function TokenRights({ scopes, usage }: TokenRightsProps) {
  if (scopes.length === 0) return <p class="muted">{summaryOf(scopes)}</p>;
  const hosts = rightsTree(scopes, usage);
  const isOpen = hosts.length === 1 || scopes.length <= OPEN_ENDPOINTS;
  return (
    <div class="rights">
      {hosts.map((host) => (
        <details key={host.host} open={isOpen}>
          <summary>
            <b dir="ltr">{host.host}</b>
            <span class="muted">
              {TEXTS.rights.endpoints({ count: host.count })}
              {host.uses !== undefined && ` · ${TEXTS.rights.uses({ count: host.uses })}`}
            </span>
          </summary>
          <HostRights host={host} hasUsage={usage !== undefined} />
        </details>
      ))}
    </div>
  );
}

interface HostRightsProps {
  readonly host: RightHost;
  readonly hasUsage: boolean;
}

function HostRights({ host, hasUsage }: HostRightsProps) {
  return (
    <table>
      <caption class="visually-hidden">{TEXTS.rights.caption({ host: host.host })}</caption>
      <thead>
        <tr>
          <th scope="col">{TEXTS.rights.path}</th>
          <th scope="col">{TEXTS.rights.method}</th>
          {hasUsage && (
            <>
              <th scope="col" class="number">
                {TEXTS.rights.usesColumn}
              </th>
              <th scope="col">{TEXTS.list.lastUsed}</th>
            </>
          )}
        </tr>
      </thead>
      {host.paths.map(({ path, leaves }) => (
        <tbody key={path}>
          {leaves.map((leaf, index) => (
            <tr key={leaf.scope} class={leaf.uses === 0 ? 'unused' : undefined}>
              {index === 0 && (
                <th scope="rowgroup" rowSpan={leaves.length}>
                  <code dir="ltr">{path}</code>
                </th>
              )}
              <td>
                <code class="method" dir="ltr">
                  {leaf.method === '*' ? TEXTS.rights.everyMethod : leaf.method}
                  {leaf.isOpen && <Below />}
                </code>
              </td>
              {hasUsage && <UseCells leaf={leaf} />}
            </tr>
          ))}
        </tbody>
      ))}
    </table>
  );
}

/** Marks a scope that allows everything below its path, as the picker does. */
function Below() {
  return (
    <>
      <span class="quiet" aria-hidden="true">
        {' /…'}
      </span>
      <span class="visually-hidden"> {TEXTS.rights.below}</span>
    </>
  );
}

function UseCells({ leaf: { uses = 0, lastUsed } }: { readonly leaf: RightLeaf }) {
  return (
    <>
      <td class="number">{LANGUAGE.counts.format(uses)}</td>
      <td>{lastUsed ? <Time seconds={lastUsed} /> : TEXTS.rights.never}</td>
    </>
  );
}
