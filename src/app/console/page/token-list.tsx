import { Component } from 'preact';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import type { Api, Finding, ShownToken, TokenPage } from './api.ts';
import { BulkBar, BulkRevokeDialog } from './bulk-revoke.tsx';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { SelectField, TextField } from './controls/field.tsx';
import { ErrorNotice } from './controls/notice.tsx';
import { LoadedPart, Screen } from './controls/screen.tsx';
import { readFindings } from './findings.ts';
import { toApiError, useDelayed, useLoaded } from './loading.ts';
import { hrefOf } from './router.ts';
import { LANGUAGE, TEXTS } from './texts.ts';
import { TokenRow } from './token-row.tsx';

const PAGE_SIZE = 50;
/** Milliseconds without typing after which a search begins. */
const SEARCH_DELAY_MS = 250;

type Sort = keyof typeof TEXTS.list.sorts;
type StateFilter = keyof ReturnType<typeof stateChoices>;

/** Not a constant: the texts are translated after this file is loaded. */
function stateChoices() {
  // No list of a service filters by it.
  const { ancestor_ended: _, ...listed } = TEXTS.states;
  return { ...listed, all: TEXTS.list.allStates };
}

export function TokenList() {
  const [name, setName] = useState('');
  const [state, setState] = useState<StateFilter>('active');
  const [sort, setSort] = useState<Sort>('created');
  const searched = useDelayed(name, SEARCH_DELAY_MS);
  const isFiltered = searched !== '' || state !== 'active';
  return (
    <Screen title={TEXTS.list.title} actions={<NewTokenLink />}>
      <search class="filters">
        <TextField type="search" label={TEXTS.list.search} value={name} onChange={setName} />
        <SelectField
          label={TEXTS.list.state}
          value={state}
          choices={stateChoices()}
          onChange={setState}
        />
        <SelectField
          label={TEXTS.list.sort}
          value={sort}
          choices={TEXTS.list.sorts}
          onChange={setSort}
        />
      </search>
      <Tokens
        name={searched}
        state={state}
        sort={sort}
        isFiltered={isFiltered}
        onClear={() => {
          setName('');
          setState('active');
        }}
      />
    </Screen>
  );
}

function NewTokenLink() {
  return (
    <a class="button primary" href={hrefOf({ screen: 'new' })}>
      {TEXTS.list.new}
    </a>
  );
}

interface TokensProps {
  readonly name: string;
  readonly state: StateFilter;
  readonly sort: Sort;
  readonly isFiltered: boolean;
  readonly onClear: () => void;
}

function Tokens({ name, state, sort, isFiltered, onClear }: TokensProps) {
  const { api } = useConsole();
  const query = { name, state };
  const read = (cursor?: string) => readPage(api, { ...query, ...(cursor && { cursor }) });
  const loaded = useLoaded(JSON.stringify(query), () => read());
  return (
    <LoadedPart loaded={loaded}>
      {(page) => {
        if (page.tokens.length === 0) {
          return isFiltered ? <NoMatch onClear={onClear} /> : <NoTokens />;
        }
        return (
          <>
            <TokenRows
              tokens={sorted(page.tokens, sort)}
              read={page.cursor === undefined ? undefined : read}
              onRevoked={loaded.reload}
            />
            <More
              page={page}
              read={read}
              onRead={(next) => loaded.set({ ...next, tokens: [...page.tokens, ...next.tokens] })}
            />
          </>
        );
      }}
    </LoadedPart>
  );
}

interface TokenRowsProps {
  readonly tokens: readonly ShownToken[];
  /** Reads all that match, if there are more than these. */
  readonly read: ((cursor?: string) => Promise<TokenPage>) | undefined;
  readonly onRevoked: () => void;
}

const isRevocable = ({ state }: ShownToken) => state !== 'revoked';

/** The tokens that are selected: some of those that are shown, or all that match. */
function useSelected(tokens: readonly ShownToken[]) {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  /** All that match, including those that are not shown. */
  const [matching, setMatching] = useState<readonly ShownToken[]>();
  const revocable = tokens.filter(isRevocable);
  const chosen = matching ?? revocable.filter(({ id }) => selected.has(id));
  const toggle = useCallback((id: string) => {
    setMatching(undefined);
    setSelected((before) => {
      const next = new Set(before);
      if (!next.delete(id)) next.add(id);
      return next;
    });
  }, []);
  const isAll = revocable.every(({ id }) => selected.has(id));
  const selectShown = (isSelected: boolean) => {
    setMatching(undefined);
    setSelected(new Set(isSelected ? revocable.map(({ id }) => id) : []));
  };
  return { selected, matching, revocable, chosen, isAll, toggle, selectShown, setMatching };
}

/** A list of tokens. Any of them can be selected and revoked together. */
function TokenRows({ tokens, read, onRevoked }: TokenRowsProps) {
  const findings = useFindingCodes();
  const { selected, matching, revocable, chosen, isAll, ...select } = useSelected(tokens);
  const [isRevoking, setRevoking] = useState(false);
  const finish = () => {
    setRevoking(false);
    select.selectShown(false);
    onRevoked();
  };
  return (
    <div class="token-rows">
      {revocable.length > 0 && (
        <BulkBar
          isAll={isAll}
          count={chosen.length}
          onToggleAll={() => select.selectShown(!isAll)}
          onRevoke={() => setRevoking(true)}
          read={matching === undefined ? read : undefined}
          onSelectMatching={(all) => select.setMatching(all.filter(isRevocable))}
        />
      )}
      <ul class="tokens">
        {tokens.map((token) => (
          <ListedToken
            key={token.id}
            token={token}
            findings={findings.get(token.id)}
            isSelected={selected.has(token.id)}
            onToggle={select.toggle}
          />
        ))}
      </ul>
      {isRevoking && (
        <BulkRevokeDialog tokens={chosen} onDone={finish} onCancel={() => setRevoking(false)} />
      )}
    </div>
  );
}

interface ListedTokenProps {
  readonly token: ShownToken;
  readonly findings: readonly string[] | undefined;
  readonly isSelected: boolean;
  readonly onToggle: (id: string) => void;
}

/** A row that is rendered again only when its own token has changed: a list may have thousands. */
class ListedToken extends Component<ListedTokenProps> {
  override shouldComponentUpdate(next: ListedTokenProps): boolean {
    const { token, findings, isSelected } = this.props;
    return token !== next.token || findings !== next.findings || isSelected !== next.isSelected;
  }

  override render({ token, findings, isSelected, onToggle }: ListedTokenProps) {
    const selection = { isSelected, onToggle: () => onToggle(token.id) };
    return (
      <TokenRow
        token={token}
        {...(findings && { findings })}
        {...(isRevocable(token) && { selection })}
      />
    );
  }
}

/** The most findings that the list reads for its badges; the review shows all. */
const MAX_FINDINGS = 500;

/** The codes of the findings, by the id of the token. The list works without them. */
function useFindingCodes(): ReadonlyMap<string, readonly string[]> {
  const { api, abilities } = useConsole();
  const [codes, setCodes] = useState<ReadonlyMap<string, readonly string[]>>(new Map());
  const hasReview = abilities.has('/review');
  useEffect(() => {
    if (!hasReview) return undefined;
    let isWanted = true;
    const found: Finding[] = [];
    readFindings(api, (findings) => {
      found.push(...findings);
      if (isWanted) setCodes(codesById(found));
      return isWanted && found.length < MAX_FINDINGS;
    }).catch(() => {});
    return () => {
      isWanted = false;
    };
  }, [api, hasReview]);
  return codes;
}

function codesById(findings: readonly Finding[]): ReadonlyMap<string, readonly string[]> {
  const codes = new Map<string, string[]>();
  for (const { code, token } of findings) {
    const known = codes.get(token.id) ?? [];
    // The review may read a token twice.
    if (!known.includes(code)) codes.set(token.id, [...known, code]);
  }
  return codes;
}

interface PageQuery {
  readonly name: string;
  readonly state: StateFilter;
  readonly cursor?: string;
}

/**
 * Reads one page. The service may end a page before the first match; this goes on from its cursor.
 */
async function readPage(api: Api, query: PageQuery): Promise<TokenPage> {
  let page = await api.list({ ...query, limit: PAGE_SIZE });
  while (page.tokens.length === 0 && page.cursor !== undefined) {
    page = await api.list({ ...query, limit: PAGE_SIZE, cursor: page.cursor });
  }
  return page;
}

interface MoreProps {
  readonly page: TokenPage;
  readonly read: (cursor: string) => Promise<TokenPage>;
  readonly onRead: (page: TokenPage) => void;
}

function More({ page: { tokens, cursor }, read, onRead }: MoreProps) {
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ReturnType<typeof toApiError>>();
  const status = useRef<HTMLParagraphElement>(null);
  const count = cursor === undefined ? TEXTS.list.shown : TEXTS.list.shownWithMore;
  const load = async () => {
    if (cursor === undefined) return;
    setBusy(true);
    setError(undefined);
    try {
      const next = await read(cursor);
      // The button has the focus and is about to disappear.
      if (next.cursor === undefined) status.current?.focus();
      onRead(next);
    } catch (failure) {
      setError(toApiError(failure));
    }
    setBusy(false);
  };
  return (
    <div class="more">
      <p role="status" ref={status} tabIndex={-1}>
        {count({ count: tokens.length })}
      </p>
      {error && <ErrorNotice error={error} />}
      {cursor !== undefined && (
        <Button onClick={load} isBusy={isBusy}>
          {isBusy ? TEXTS.list.loadingMore : TEXTS.list.more}
        </Button>
      )}
    </div>
  );
}

function NoTokens() {
  return (
    <div class="empty card">
      <h2>{TEXTS.list.emptyTitle}</h2>
      <p>{TEXTS.list.empty}</p>
      <NewTokenLink />
    </div>
  );
}

function NoMatch({ onClear }: { readonly onClear: () => void }) {
  return (
    <div class="empty card">
      <h2>{TEXTS.list.noMatchTitle}</h2>
      <p>{TEXTS.list.noMatch}</p>
      <Button onClick={onClear}>{TEXTS.list.clearFilters}</Button>
    </div>
  );
}

/** Sorts the tokens that are loaded. The service itself lists the newest first. */
function sorted(tokens: readonly ShownToken[], sort: Sort): readonly ShownToken[] {
  switch (sort) {
    case 'expires':
      return tokens.toSorted((a, b) => a.expire - b.expire);
    case 'used':
      return tokens.toSorted((a, b) => (b.lastUsed ?? 0) - (a.lastUsed ?? 0));
    case 'name':
      return tokens.toSorted((a, b) => LANGUAGE.order.compare(a.name ?? '', b.name ?? ''));
    default:
      return tokens;
  }
}
