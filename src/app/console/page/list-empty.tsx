import type { ShownToken } from './api.ts';
import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { Empty } from './controls/empty.tsx';
import { Icon } from './controls/icon.tsx';
import { LoadedPart } from './controls/screen.tsx';
import { activeFilters, type FilterName, type ListFilters, NO_FILTERS } from './list-filters.ts';
import { useLoaded } from './loading.ts';
import { hrefOf } from './router.ts';
import { nameOf } from './shown-token.ts';
import { TEXTS } from './texts.ts';
import { stateChoices, type TokenFiltersProps } from './token-filters.tsx';

/** Says why a list is empty, and what to do about it. */
export function EmptyList({ filters, onFilter }: TokenFiltersProps) {
  const active = activeFilters(filters);
  if (active.length === 0) return <NoLiveTokens onShowAll={() => onFilter({ state: 'all' })} />;
  return (
    <Empty icon="key" title={TEXTS.list.noMatchTitle}>
      <p>{TEXTS.list.noMatch({ count: active.length })}</p>
      <ul class="chips">
        {active.map((name) => (
          <li key={name}>
            <FilterChip
              text={filterText(filters, name)}
              onRemove={() => onFilter({ [name]: NO_FILTERS[name] })}
            />
          </li>
        ))}
      </ul>
      <Button onClick={() => onFilter({ ...NO_FILTERS, sort: filters.sort })}>
        {TEXTS.list.clearFilters}
      </Button>
    </Empty>
  );
}

function filterText(filters: ListFilters, name: FilterName): string {
  const { filter, unused, name: label, state, scope, host, createdBy } = TEXTS.list;
  switch (name) {
    case 'unused':
      return unused;
    case 'state':
      return filter({ label: state, value: stateChoices()[filters.state] });
    case 'name':
      return filter({ label, value: filters.name });
    case 'scope':
      return filter({ label: scope, value: filters.scope });
    case 'domain':
      return filter({ label: host, value: filters.domain });
    case 'createdBy':
      return filter({ label: createdBy, value: filters.createdBy });
  }
}

function FilterChip({ text, onRemove }: { readonly text: string; readonly onRemove: () => void }) {
  return (
    <button
      type="button"
      class="chip"
      aria-label={TEXTS.list.removeFilter({ filter: text })}
      onClick={onRemove}
    >
      <span dir="auto">{text}</span>
      <span aria-hidden="true">×</span>
    </button>
  );
}

/** Nothing is filtered. There may be tokens in other states, and the newest one of them is named. */
function NoLiveTokens({ onShowAll }: { readonly onShowAll: () => void }) {
  const { api } = useConsole();
  const loaded = useLoaded('newest', async () => {
    const page = await api.list({ state: 'all', limit: 1 });
    return page.tokens[0];
  });
  return (
    <LoadedPart loaded={loaded}>
      {(newest) =>
        newest === undefined ? <NoTokens /> : <NoLive newest={newest} onShowAll={onShowAll} />
      }
    </LoadedPart>
  );
}

function NoTokens() {
  return (
    <Empty icon="key" title={TEXTS.list.emptyTitle}>
      <p>{TEXTS.list.empty}</p>
      <NewTokenLink />
    </Empty>
  );
}

interface NoLiveProps {
  readonly newest: ShownToken;
  readonly onShowAll: () => void;
}

function NoLive({ newest, onShowAll }: NoLiveProps) {
  const texts: Readonly<Record<string, typeof TEXTS.list.noLive.expired>> = TEXTS.list.noLive;
  return (
    <Empty icon="key" title={TEXTS.list.noLiveTitle}>
      <p>{texts[newest.state]?.({ name: nameOf(newest) })}</p>
      <div class="actions">
        <Button onClick={onShowAll}>{TEXTS.list.showAll}</Button>
        <NewTokenLink />
      </div>
    </Empty>
  );
}

export function NewTokenLink() {
  return (
    <a class="button primary" href={hrefOf({ screen: 'new' })}>
      <Icon name="plus" />
      {TEXTS.list.new}
    </a>
  );
}
