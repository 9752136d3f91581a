import type { FreshToken, ShownToken } from './api.ts';
import { EditDialog } from './edit-dialog.tsx';
import { NarrowDialog, RemoveDialog } from './narrow-dialog.tsx';
import { RevokeDialog } from './revoke-dialog.tsx';
import { RotateDialog } from './rotate-dialog.tsx';
import { ScopesDialog } from './scopes-dialog.tsx';

/** A dialog about a token, with what it is about. */
export type OpenDialog =
  | { readonly kind: 'revoke' | 'rotate' | 'edit' | 'narrow' }
  | { readonly kind: 'scopes'; readonly added?: string }
  | { readonly kind: 'remove'; readonly scopes: readonly string[] };

export interface TokenDialogProps {
  readonly open: OpenDialog;
  readonly token: ShownToken;
  readonly onChanged: (token: ShownToken) => void;
  readonly onRotated: (token: FreshToken) => void;
  readonly onRevoked: () => void;
  readonly onCancel: () => void;
}

export function TokenDialog({ open, token, onRotated, onRevoked, ...rest }: TokenDialogProps) {
  const { onChanged, onCancel } = rest;
  switch (open.kind) {
    case 'revoke':
      return <RevokeDialog token={token} onRevoked={onRevoked} onCancel={onCancel} />;
    case 'rotate':
      return <RotateDialog token={token} onRotated={onRotated} onCancel={onCancel} />;
    case 'edit':
      return <EditDialog token={token} onChanged={onChanged} onCancel={onCancel} />;
    case 'narrow':
      return <NarrowDialog token={token} onChanged={onChanged} onCancel={onCancel} />;
    case 'remove':
      return <RemoveDialog token={token} scopes={open.scopes} {...rest} />;
    case 'scopes':
      return <ScopesDialog token={token} added={open.added} {...rest} />;
  }
}
