import type { ListQuery } from './api.ts';

const STATES = ['live', 'active', 'suspended', 'expired', 'revoked', 'all'] as const;
const SORTS = ['created', 'expire', 'lastUsed', 'name'] as const;

/** What the list of tokens shows, and in which order. */
export interface ListFilters {
  /** A part of the name. */
  readonly name: string;
  /** `live` is active or suspended. */
  readonly state: (typeof STATES)[number];
  readonly scope: string;
  readonly domain: string;
  /** The whole name of who made it. */
  readonly createdBy: string;
  /** Only tokens that were never used. */
  readonly unused: boolean;
  readonly sort: (typeof SORTS)[number];
}

/** A filter, apart from the order. */
export type FilterName = Exclude<keyof ListFilters, 'sort'>;

export const NO_FILTERS: ListFilters = {
  name: '',
  state: 'live',
  scope: '',
  domain: '',
  createdBy: '',
  unused: false,
  sort: 'created',
};

const NAMES: readonly FilterName[] = ['name', 'state', 'scope', 'domain', 'createdBy', 'unused'];

/** The filters that leave something out. */
export function activeFilters(filters: ListFilters): readonly FilterName[] {
  return NAMES.filter((name) => filters[name] !== NO_FILTERS[name]);
}

/** Reads the filters from the query of an address. What it does not know is as if it were absent. */
export function readFilters(search: string): ListFilters {
  const given = new URLSearchParams(search);
  const textOf = (name: string) => given.get(name) ?? '';
  const oneOf = <Choice extends string>(name: string, choices: readonly Choice[], first: Choice) =>
    choices.find((choice) => choice === given.get(name)) ?? first;
  return {
    name: textOf('name'),
    state: oneOf('state', STATES, NO_FILTERS.state),
    scope: textOf('scope'),
    domain: textOf('domain'),
    createdBy: textOf('createdBy'),
    unused: given.get('unused') === 'never',
    sort: oneOf('sort', SORTS, NO_FILTERS.sort),
  };
}

/** The query of an address: only what differs from a list without filters. */
export function searchOf(filters: ListFilters): string {
  const all = Object.entries(queryOf(filters));
  const own = all.filter(([name, value]) => value && value !== NO_FILTERS[name as FilterName]);
  return new URLSearchParams(own).toString();
}

/** The parameters by which the service filters and sorts. */
export function queryOf(filters: ListFilters): Omit<ListQuery, 'limit'> {
  const { name, state, scope, domain, createdBy, unused, sort } = filters;
  return {
    state,
    sort,
    ...(name !== '' && { name }),
    ...(scope !== '' && { scope }),
    ...(domain !== '' && { domain }),
    ...(createdBy !== '' && { createdBy }),
    ...(unused && { unused: 'never' }),
  };
}

/** Whether a text has the form of a value: it must get into no address and no log. */
export function looksLikeValue(text: string): boolean {
  return /_1[0-9A-Za-z]{57}/.test(text);
}
