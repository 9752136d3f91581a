import { Component } from 'preact';
import type { WirePermission } from '../../../http/wire.ts';
import type { ShownToken } from './api.ts';
import { FindingBadge, StateBadge } from './controls/badge.tsx';
import { Foreign } from './controls/foreign.tsx';
import { Time } from './controls/time.tsx';
import { nameOf } from './shown-token.ts';
import { TEXTS } from './texts.ts';
import { Elevation, LastUse, TokenLink } from './token-row.tsx';
import { RightsLine } from './words.tsx';

export interface TokenTableProps {
  readonly tokens: readonly ShownToken[];
  /** The codes of the findings of the review, by the id of the token. */
  readonly findings: ReadonlyMap<string, readonly string[]>;
  /** In which rights are described; absent until they are read. */
  readonly permissions: readonly WirePermission[] | undefined;
  readonly selected: ReadonlySet<string>;
  readonly isSelectable: (token: ShownToken) => boolean;
  readonly onToggle: (id: string) => void;
}

/** Tokens in a table, which narrow windows show as cards. */
export function TokenTable(props: TokenTableProps) {
  const { tokens, findings, permissions, selected, isSelectable, onToggle } = props;
  const byId = new Map(tokens.map((token) => [token.id, token]));
  return (
    <table class="token-table">
      <caption class="visually-hidden">{TEXTS.list.title}</caption>
      <thead>
        <tr>
          <td />
          <th scope="col">{TEXTS.list.name}</th>
          <th scope="col">{TEXTS.list.rights}</th>
          <th scope="col">{TEXTS.list.expires}</th>
          <th scope="col">{TEXTS.list.lastUsed}</th>
          <th scope="col">{TEXTS.list.state}</th>
        </tr>
      </thead>
      <tbody>
        {tokens.map((token) => (
          <Row
            key={token.id}
            token={token}
            first={byId.get(token.elevates ?? '')}
            findings={findings.get(token.id)}
            permissions={permissions}
            isSelected={isSelectable(token) ? selected.has(token.id) : undefined}
            onToggle={onToggle}
          />
        ))}
      </tbody>
    </table>
  );
}

interface RowProps {
  readonly token: ShownToken;
  /** The one that an elevation adds rights to, if it is in the list. */
  readonly first: ShownToken | undefined;
  readonly findings: readonly string[] | undefined;
  readonly permissions: readonly WirePermission[] | undefined;
  /** Absent if the token cannot be selected. */
  readonly isSelected: boolean | undefined;
  readonly onToggle: (id: string) => void;
}

/** A row that is rendered again only when something of its own has changed: a list may have thousands. */
class Row extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    const { token, findings, permissions, isSelected } = this.props;
    if (token !== next.token || findings !== next.findings) return true;
    return permissions !== next.permissions || isSelected !== next.isSelected;
  }

  override render({ token, first, findings = [], permissions, isSelected, onToggle }: RowProps) {
    const name = nameOf(token);
    return (
      <tr class={isSelected ? 'selected' : undefined}>
        <td class="check">
          {isSelected !== undefined && (
            <input
              type="checkbox"
              aria-label={TEXTS.bulk.select({ name })}
              checked={isSelected}
              onChange={() => onToggle(token.id)}
            />
          )}
        </td>
        <th scope="row">
          <TokenLink token={token} />
          <span class="token-mark">
            <code dir="ltr">{token.masked}</code>{' '}
            <span>
              {TEXTS.list.created} <Time seconds={token.createdAt} />
              {token.createdBy !== undefined && (
                <>
                  {' '}
                  {TEXTS.list.by} <Foreign text={token.createdBy} />
                </>
              )}
            </span>
            {token.elevates !== undefined && <Elevation id={token.elevates} known={first} />}
          </span>
        </th>
        <td class="may">
          {permissions && <RightsLine scopes={token.scopes} permissions={permissions} />}
        </td>
        <td>
          <Label>{token.state === 'expired' ? TEXTS.list.expired : TEXTS.list.expires}</Label>
          <Time seconds={token.expire} />
        </td>
        <td>
          <Label>{TEXTS.list.lastUsed}</Label>
          <LastUse token={token} />
        </td>
        <td class="states">
          <StateBadge token={token} />
          {findings.map((code) => (
            <FindingBadge key={code} code={code} />
          ))}
        </td>
      </tr>
    );
  }
}

/** Names a cell where there is no head. */
function Label({ children }: { readonly children: string }) {
  return <span class="cell-label">{children}</span>;
}
