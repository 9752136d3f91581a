import type { FreshToken, ShownToken } from './api.ts';
import { EditDialog } from './edit-dialog.tsx';
import { NarrowDialog, RemoveDialog } from './narrow-dialog.tsx';
import { RevokeDialog } from './revoke-dialog.tsx';
import { RotateDialog } from './rotate-dialog.tsx';

/** The kind of an open dialog about a token, with the scopes that some kinds need. */
export type OpenDialog =
  | { readonly kind: 'revoke' | 'rotate' | 'narrow' }
  | { readonly kind: 'edit'; readonly added?: readonly string[] }
  | { readonly kind: 'remove'; readonly scopes: readonly string[] };

export interface TokenDialogProps {
  readonly open: OpenDialog;
  readonly token: ShownToken;
  readonly onChanged: (token: ShownToken) => void;
  readonly onRotated: (token: FreshToken) => void;
  readonly onRevoked: () => void;
  readonly onCancel: () => void;
}

export function TokenDialog({ open, onRotated, onRevoked, ...props }: TokenDialogProps) {
  switch (open.kind) {
    case 'revoke':
      return <RevokeDialog {...props} onRevoked={onRevoked} />;
    case 'rotate':
      return <RotateDialog {...props} onRotated={onRotated} />;
    case 'edit':
      return <EditDialog {...props} added={open.added} />;
    case 'narrow':
      return <NarrowDialog {...props} />;
    case 'remove':
      return <RemoveDialog {...props} scopes={open.scopes} />;
  }
}
