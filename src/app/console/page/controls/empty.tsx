import type { ComponentChildren } from 'preact';
import { Icon, type IconName } from './icon.tsx';

export interface EmptyProps {
  readonly icon: IconName;
  readonly title: string;
  readonly children: ComponentChildren;
}

/** A card in place of a list, which says why there is nothing. */
export function Empty({ icon, title, children }: EmptyProps) {
  return (
    <div class="empty card">
      <span class="empty-mark">
        <Icon name={icon} />
      </span>
      <h2>{title}</h2>
      {children}
    </div>
  );
}
