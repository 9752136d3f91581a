import { partsOf } from '../foreign-text.ts';

/**
 * A text that a stranger has chosen. Its direction does not reach the text around it, and characters that nobody
 * can see are shown as their code points.
 */
export function Foreign({ text }: { readonly text: string }) {
  return (
    <bdi>
      {partsOf(text).map((part, at) =>
        part.isHidden ? (
          <code key={at} class="hidden-character" dir="ltr">
            {part.text}
          </code>
        ) : (
          part.text
        ),
      )}
    </bdi>
  );
}
