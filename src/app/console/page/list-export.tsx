import { useConsole } from './context.ts';
import { Button } from './controls/button.tsx';
import { Icon } from './controls/icon.tsx';
import { ErrorNotice } from './controls/notice.tsx';
import { csvOf } from './list-csv.ts';
import type { ListFilters } from './list-filters.ts';
import { useReadAll } from './read-tokens.ts';
import { TEXTS } from './texts.ts';

/** Saves all tokens that match as a file, also those that are not shown. */
export function ExportButton({ filters }: { readonly filters: ListFilters }) {
  const { api, announce } = useConsole();
  const { count, error, start } = useReadAll(api, filters, (tokens) => {
    download(csvOf(tokens));
    announce(TEXTS.list.exported({ count: tokens.length }));
  });
  return (
    <div class="export">
      <Button onClick={start} isBusy={count !== undefined}>
        <Icon name="download" />
        {count === undefined ? TEXTS.list.export : TEXTS.list.exporting({ count })}
      </Button>
      {error && <ErrorNotice error={error} />}
    </div>
  );
}

function download(csv: string): void {
  const address = URL.createObjectURL(new Blob([csv], { type: 'text/csv' }));
  const link = document.createElement('a');
  link.href = address;
  link.download = `tokens-${new Date().toISOString().slice(0, 10)}.csv`;
  link.click();
  URL.revokeObjectURL(address);
}
