import { useState } from 'preact/hooks';
import { safeParseScope } from '../../../scope/index.ts';
import { useConsole } from './context.ts';
import { SelectField, TextField } from './controls/field.tsx';
import { Icon } from './controls/icon.tsx';
import { messageOf } from './controls/notice.tsx';
import { activeFilters, type ListFilters, looksLikeValue } from './list-filters.ts';
import { useLoaded, useTyped } from './loading.ts';
import { TEXTS } from './texts.ts';

export interface TokenFiltersProps {
  readonly filters: ListFilters;
  readonly onFilter: (part: Partial<ListFilters>) => void;
}

/** The search by name and the other filters of the list, and its order. */
export function TokenFilters({ filters, onFilter }: TokenFiltersProps) {
  const name = useTypedFilter(filters.name, looksLikeValue, (typed) => onFilter({ name: typed }));
  return (
    <search class="filters">
      <TextField
        type="search"
        label={TEXTS.list.search}
        value={name.text}
        error={name.isWrong ? TEXTS.list.searchedValue : undefined}
        onChange={name.type}
      />
      <SelectField
        label={TEXTS.list.state}
        value={filters.state}
        choices={stateChoices()}
        onChange={(state) => onFilter({ state })}
      />
      <SelectField
        label={TEXTS.list.sort}
        value={filters.sort}
        choices={TEXTS.list.sorts}
        onChange={(sort) => onFilter({ sort })}
      />
      <MoreFilters filters={filters} onFilter={onFilter} />
    </search>
  );
}

/** Not a constant: the texts are translated after this file is loaded. */
export function stateChoices(): Readonly<Record<ListFilters['state'], string>> {
  // No list of a service filters by it.
  const { ancestor_ended: _, ...listed } = TEXTS.states;
  return { live: TEXTS.list.liveStates, ...listed, all: TEXTS.list.allStates };
}

/** A filter that is typed. While its text is wrong, the list stays as it is. */
function useTypedFilter(
  value: string,
  isWrong: (text: string) => boolean,
  onSettled: (text: string) => void,
) {
  const [text, type] = useTyped(value, (next) => {
    if (!isWrong(next)) onSettled(next);
  });
  return { text, type, isWrong: isWrong(text) };
}

/** The filters behind a disclosure, which says how many are active. */
function MoreFilters({ filters, onFilter }: TokenFiltersProps) {
  const active = activeFilters(filters).filter((name) => name !== 'name' && name !== 'state');
  const [isOpen, setOpen] = useState(false);
  return (
    <details
      class="more-filters"
      data-active={active.length > 0}
      open={isOpen}
      onToggle={({ currentTarget }) => setOpen(currentTarget.open)}
    >
      <summary>
        <Icon name="filter" />{' '}
        {active.length === 0
          ? TEXTS.list.filters
          : TEXTS.list.activeFilters({ count: active.length })}
      </summary>
      {isOpen && (
        <div class="filters">
          <ScopeFilter filters={filters} onFilter={onFilter} />
          <HostFilter filters={filters} onFilter={onFilter} />
          <MakerFilter filters={filters} onFilter={onFilter} />
          <label class="check">
            <input
              type="checkbox"
              checked={filters.unused}
              onChange={({ currentTarget }) => onFilter({ unused: currentTarget.checked })}
            />{' '}
            {TEXTS.list.unused}
          </label>
        </div>
      )}
    </details>
  );
}

function ScopeFilter({ filters, onFilter }: TokenFiltersProps) {
  const isWrong = (text: string) => scopeProblem(text) !== undefined;
  const typed = useTypedFilter(filters.scope, isWrong, (scope) => onFilter({ scope }));
  return (
    <TextField
      label={TEXTS.list.scope}
      placeholder={TEXTS.list.scopeExample}
      value={typed.text}
      error={scopeProblem(typed.text)}
      isMono
      onChange={typed.type}
    />
  );
}

/** What is wrong with a scope, in the words of the service. */
function scopeProblem(text: string): string | undefined {
  if (text.trim() === '') return undefined;
  const reading = safeParseScope(text);
  return reading.ok ? undefined : messageOf({ code: 'invalid_scope', message: reading.message });
}

function MakerFilter({ filters, onFilter }: TokenFiltersProps) {
  const typed = useTypedFilter(filters.createdBy, looksLikeValue, (createdBy) =>
    onFilter({ createdBy }),
  );
  return (
    <TextField
      label={TEXTS.list.createdBy}
      placeholder={TEXTS.list.createdByHint}
      value={typed.text}
      error={typed.isWrong ? TEXTS.list.searchedValue : undefined}
      onChange={typed.type}
    />
  );
}

/** A choice of the hosts that the account may ask for. Until they are read, all that is chosen. */
function HostFilter({ filters, onFilter }: TokenFiltersProps) {
  const { choices } = useConsole();
  const loaded = useLoaded('choices', choices);
  const known =
    loaded.state === 'ready' ? loaded.value.scopes.map(({ scope }) => hostOf(scope)) : [];
  const hosts = [...new Set([...known, filters.domain])].filter((host) => host !== '').sort();
  return (
    <SelectField
      label={TEXTS.list.host}
      value={filters.domain}
      choices={{ '': TEXTS.list.anyHost, ...Object.fromEntries(hosts.map((host) => [host, host])) }}
      onChange={(domain) => onFilter({ domain })}
    />
  );
}

/** The host of a scope; none for one that stands for many. */
function hostOf(scope: string): string {
  const reading = safeParseScope(scope);
  return reading.ok && !reading.scope.domain.includes('*') ? reading.scope.domain : '';
}
