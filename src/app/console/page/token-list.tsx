import { useCallback, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { type Finding, type ShownToken, takesRequests } from './api.ts';
import { BulkBar, BulkRevokeDialog } from './bulk-revoke.tsx';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { ErrorNotice, messageOf, Notice } from './controls/notice.tsx';
import { LoadedPart, Screen } from './controls/screen.tsx';
import { readFindings } from './findings.ts';
import { EmptyList, NewTokenLink } from './list-empty.tsx';
import { ExportButton } from './list-export.tsx';
import { type ListFilters, readFilters, searchOf } from './list-filters.ts';
import { toApiError, useLoaded } from './loading.ts';
import { type ListPage, readList, readNext } from './read-tokens.ts';
import { hrefOf, replaceRoute } from './router.ts';
import { TEXTS } from './texts.ts';
import { TokenFilters, type TokenFiltersProps } from './token-filters.tsx';
import { TokenTable } from './token-table.tsx';
import { useKnownWords } from './words.tsx';

/** The tokens of the account. The address holds the filters, so that a reload and the way back keep them. */
export function TokenList({ search }: { readonly search: string }) {
  const filters = useMemo(() => readFilters(search), [search]);
  const filter = (part: Partial<ListFilters>) =>
    replaceRoute({ screen: 'list', search: searchOf({ ...filters, ...part }) });
  return (
    <Screen title={TEXTS.list.title} actions={<ListActions />}>
      <TokenFilters filters={filters} onFilter={filter} />
      <Tokens filters={filters} onFilter={filter} />
    </Screen>
  );
}

function ListActions() {
  const { abilities } = useConsole();
  return (
    <>
      {takesRequests(abilities) && (
        <a class="button" href={hrefOf({ screen: 'approve' })}>
          {TEXTS.approve.title}
        </a>
      )}
      <NewTokenLink />
    </>
  );
}

function Tokens({ filters, onFilter }: TokenFiltersProps) {
  const { api } = useConsole();
  const loaded = useLoaded(JSON.stringify(filters), () => readList(api, filters));
  return (
    <LoadedPart loaded={loaded}>
      {(page) => {
        if (page.tokens.length === 0) return <EmptyList filters={filters} onFilter={onFilter} />;
        return (
          <>
            {page.refused && (
              <Notice kind="warning">
                <p dir="auto">{TEXTS.list.sortRefused({ message: messageOf(page.refused) })}</p>
              </Notice>
            )}
            <TokenRows page={page} filters={filters} onRevoked={loaded.reload} />
            <More
              page={page}
              filters={filters}
              onRead={(next) => loaded.set({ ...next, tokens: [...page.tokens, ...next.tokens] })}
            />
          </>
        );
      }}
    </LoadedPart>
  );
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

interface TokenRowsProps {
  readonly page: ListPage;
  readonly filters: ListFilters;
  readonly onRevoked: () => void;
}

/** A list of tokens. Any of them can be selected and revoked together. */
function TokenRows({ page: { tokens, cursor }, filters, onRevoked }: TokenRowsProps) {
  const findings = useFindingCodes();
  const { permissions } = useKnownWords();
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
          filters={matching === undefined && cursor !== undefined ? filters : undefined}
          onSelectMatching={(all) => select.setMatching(all.filter(isRevocable))}
        />
      )}
      <TokenTable
        tokens={tokens}
        findings={findings}
        permissions={permissions}
        selected={selected}
        isSelectable={isRevocable}
        onToggle={select.toggle}
      />
      {isRevoking && (
        <BulkRevokeDialog tokens={chosen} onDone={finish} onCancel={() => setRevoking(false)} />
      )}
    </div>
  );
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

interface MoreProps {
  readonly page: ListPage;
  readonly filters: ListFilters;
  readonly onRead: (page: ListPage) => void;
}

function More({ page, filters, onRead }: MoreProps) {
  const { api } = useConsole();
  const [isBusy, setBusy] = useState(false);
  const [error, setError] = useState<ReturnType<typeof toApiError>>();
  const status = useRef<HTMLParagraphElement>(null);
  const hasMore = page.cursor !== undefined;
  const count = hasMore ? TEXTS.list.shownWithMore : TEXTS.list.shown;
  const load = async () => {
    setBusy(true);
    setError(undefined);
    try {
      const next = await readNext(api, filters, page);
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
        {count({ count: page.tokens.length })}
      </p>
      {error && <ErrorNotice error={error} />}
      {hasMore && (
        <Button onClick={load} isBusy={isBusy}>
          {isBusy ? TEXTS.list.loadingMore : TEXTS.list.more}
        </Button>
      )}
      <ExportButton filters={filters} />
    </div>
  );
}
