import type { WireUsage } from '../../../http/wire.ts';
import { Time } from './controls/time.tsx';
import { type RightHost, type RightLeaf, rightsTree } from './rights.ts';
import { LANGUAGE, TEXTS } from './texts.ts';
import { useSummaries } from './words.tsx';

/** With more endpoints than this, hosts are closed at first. */
const OPEN_ENDPOINTS = 60;

export interface TokenRightsProps {
  readonly scopes: readonly string[];
  /** Absent if use is not recorded. */
  readonly usage: WireUsage | undefined;
}

/** What a token may do, by host and path, and how much of it is used. */
export function TokenRights({ scopes, usage }: TokenRightsProps) {
  const summaries = useSummaries();
  // A revoked token has none, which is said above.
  if (scopes.length === 0) return null;
  const hosts = rightsTree(scopes, usage, summaries);
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
          <HostRights
            host={host}
            hasUsage={usage !== undefined}
            hasWords={host.paths.some(({ leaves }) => leaves.some(({ summary }) => summary))}
          />
        </details>
      ))}
    </div>
  );
}

interface HostRightsProps {
  readonly host: RightHost;
  readonly hasUsage: boolean;
  /** Whether the catalog says what some of the endpoints do. */
  readonly hasWords: boolean;
}

function HostRights({ host, hasUsage, hasWords }: HostRightsProps) {
  return (
    <table class={hasWords ? 'in-words' : undefined}>
      <caption class="visually-hidden">{TEXTS.rights.caption({ host: host.host })}</caption>
      <thead>
        <tr>
          {hasWords ? (
            <th scope="col">{TEXTS.rights.endpoint}</th>
          ) : (
            <>
              <th scope="col">{TEXTS.rights.path}</th>
              <th scope="col">{TEXTS.rights.method}</th>
            </>
          )}
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
      {host.paths.map((rights) => (
        <tbody key={rights.path}>
          {rights.leaves.map((leaf, index) => (
            <tr key={leaf.scope} class={leaf.uses === 0 ? 'unused' : undefined}>
              {hasWords ? (
                <WordCell leaf={leaf} path={rights.path} />
              ) : (
                <PathCells leaf={leaf} rights={rights} isFirst={index === 0} />
              )}
              {hasUsage && <UseCells leaf={leaf} />}
            </tr>
          ))}
        </tbody>
      ))}
    </table>
  );
}

/** What an endpoint does, and below that its method and path. */
function WordCell({ leaf, path }: { readonly leaf: RightLeaf; readonly path: string }) {
  return (
    <th scope="row">
      {leaf.summary !== undefined && <bdi>{leaf.summary}</bdi>}
      <code class="exact muted" dir="ltr">
        <Method leaf={leaf} /> {path}
      </code>
    </th>
  );
}

interface PathCellsProps {
  readonly leaf: RightLeaf;
  readonly rights: RightHost['paths'][number];
  readonly isFirst: boolean;
}

function PathCells({ leaf, rights: { path, leaves }, isFirst }: PathCellsProps) {
  return (
    <>
      {isFirst && (
        <th scope="rowgroup" rowSpan={leaves.length}>
          <code dir="ltr">{path}</code>
        </th>
      )}
      <td>
        <code class="method" dir="ltr">
          <Method leaf={leaf} />
        </code>
      </td>
    </>
  );
}

export function Method({ leaf: { method, isOpen } }: { readonly leaf: RightLeaf }) {
  return (
    <>
      {method === '*' ? TEXTS.rights.everyMethod : method}
      {isOpen && <Below />}
    </>
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
