import { useState } from 'preact/hooks';
import { Code } from './controls/code.tsx';
import { jsonOf } from './new-token-draft.ts';
import { TEXTS } from './texts.ts';

export interface SameCallProps {
  readonly body: object;
  readonly curl: string;
}

/** The call that a form makes, for programs. It follows what is entered. */
export function SameCall({ body, curl }: SameCallProps) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="card" onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{TEXTS.newToken.sameCall}</summary>
      {isOpen && (
        <div class="stack">
          <Code
            title={TEXTS.newToken.json}
            text={jsonOf(body, 2)}
            label={TEXTS.newToken.copyJson}
          />
          <Code title={TEXTS.newToken.curl} text={curl} label={TEXTS.newToken.copyCurl} />
        </div>
      )}
    </details>
  );
}
