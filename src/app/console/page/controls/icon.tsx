/** The icons, one for each kind of thing: lines on a field of 16 by 16. */
const PATHS = {
  alert: 'M8 2 14.5 13.5h-13ZM8 6.5v3M8 11.5v.01',
  branch: 'M4.5 2.5v11M4.5 5.5c0 3 7 2 7 5.5M11.5 11v2.5',
  check: 'M3 8.5 6.5 12 13 4.5',
  clock: 'M8 1.75a6.25 6.25 0 1 0 0 12.5 6.25 6.25 0 0 0 0-12.5ZM8 4.5V8l2.5 1.5',
  copy: 'M5.5 5.5h8v8h-8ZM10.5 5.5v-3h-8v8h3',
  download: 'M8 2v8.5M4.5 7 8 10.5 11.5 7M2.5 13.5h11',
  filter: 'M2 4h12M4.5 8h7M6.5 12h3',
  info: 'M8 1.75a6.25 6.25 0 1 0 0 12.5 6.25 6.25 0 0 0 0-12.5ZM8 7.25v4M8 4.75v.01',
  key: 'M10.75 1.75a3.5 3.5 0 1 0 0 7 3.5 3.5 0 0 0 0-7ZM8.25 7.75 2 14v-2.5M4.25 11.75l1.5 1.5',
  plus: 'M8 3v10M3 8h10',
  search: 'M7 2.25a4.75 4.75 0 1 0 0 9.5 4.75 4.75 0 0 0 0-9.5ZM10.5 10.5 14 14',
  shield:
    'M8 1.75 13.25 3.5V8c0 3-2.25 5.25-5.25 6.25C5 13.25 2.75 11 2.75 8V3.5ZM5.75 8l1.75 1.75L10.5 6.5',
  user: 'M8 2.25a2.75 2.75 0 1 0 0 5.5 2.75 2.75 0 0 0 0-5.5ZM2.75 13.75c.5-2.75 2.5-4 5.25-4s4.75 1.25 5.25 4',
  use: 'M1.75 8.5h3L6.5 3.5l3 9 1.75-4h3',
} as const;

export type IconName = keyof typeof PATHS;

/** A small drawing beside a text that says the same. */
export function Icon({ name }: { readonly name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
