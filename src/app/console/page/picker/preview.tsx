import { useState } from 'preact/hooks';
import { messageOf } from '../controls/notice.tsx';
import { TEXTS } from '../texts.ts';
import { pathText } from './branch-path.tsx';
import { Rows } from './disclosure.tsx';
import type { Preview } from './request.ts';
import type { Selection } from './selection.ts';

export interface PreviewPanelProps {
  readonly selection: Selection;
  readonly preview: Preview;
}

/** Shows which scopes the service would grant for the selection. */
export function PreviewPanel({ selection, preview }: PreviewPanelProps) {
  return (
    // It may scroll by itself, and keyboard users have to be able to scroll it.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: see above
    <section class="preview" aria-label={TEXTS.picker.preview} tabIndex={0}>
      <h2>{TEXTS.picker.preview}</h2>
      <div role="status">
        <Summary selection={selection} preview={preview} />
      </div>
      {preview.ok && <Scopes preview={preview} />}
    </section>
  );
}

function Summary({ selection, preview }: PreviewPanelProps) {
  if (preview.ok) return <p>{summaryOf(preview)}</p>;
  if (selection.isEmpty) return <p class="quiet">{TEXTS.picker.nothing}</p>;
  return <p class="error">{problemOf(selection, preview)}</p>;
}

/** Why a selection cannot be asked for; `undefined` if it can, or if nothing is selected. */
export function problemOf(selection: Selection, preview: Preview): string | undefined {
  if (preview.ok || selection.isEmpty) return undefined;
  const { problem } = selection;
  if (problem !== undefined) return TEXTS.picker.badName({ path: pathText(problem.branch) });
  return typeof preview.error === 'object' ? messageOf(preview.error) : TEXTS.picker.badPath;
}

function summaryOf({ granted, hosts, writing }: Preview & { readonly ok: true }): string {
  const [host = ''] = hosts;
  const where = hosts.length === 1 ? host : TEXTS.picker.hosts({ count: hosts.length });
  const endpoints = TEXTS.picker.count({ count: granted.length });
  return `${TEXTS.picker.granted({ endpoints, where })} ${effectOf(writing, granted.length)}`;
}

function effectOf(writing: number, all: number): string {
  if (writing === 0) return TEXTS.picker.onlyReading({ count: all });
  return writing === all
    ? TEXTS.picker.allWriting({ count: all })
    : TEXTS.picker.writing({ count: writing });
}

function Scopes({ preview: { requested, granted } }: { readonly preview: Preview & { ok: true } }) {
  return (
    <>
      <OnDemand
        title={TEXTS.picker.requested({ count: requested.length })}
        scopes={requested}
        isFirst
      />
      <OnDemand title={TEXTS.picker.exactly({ count: granted.length })} scopes={granted} />
      <p class="hint">{TEXTS.picker.snapshot}</p>
    </>
  );
}

interface OnDemandProps {
  readonly title: string;
  readonly scopes: readonly string[];
  readonly isFirst?: boolean;
}

/** More scopes than this are shown if asked for. */
const SHORT = 10;

/** A list that is rendered once it is opened. A short one is open from the start. */
function OnDemand({ title, scopes, isFirst = false }: OnDemandProps) {
  const [chosen, setOpen] = useState<boolean>();
  const isOpen = chosen ?? (isFirst && scopes.length <= SHORT);
  return (
    <details open={isOpen}>
      {/* Not by `toggle`: a list that opens by itself has to close by itself when it grows. */}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: it is the control of its details */}
      <summary
        onClick={(event) => {
          event.preventDefault();
          setOpen(!isOpen);
        }}
      >
        {title}
      </summary>
      {isOpen && <ScopeList scopes={scopes} />}
    </details>
  );
}

function ScopeList({ scopes }: { readonly scopes: readonly string[] }) {
  return (
    <Rows items={scopes} class="scope-list">
      {(scope) => (
        <li key={scope}>
          <code dir="ltr">{scope}</code>
        </li>
      )}
    </Rows>
  );
}
