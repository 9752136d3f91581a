/**
 * Who is signed in. Credentials live in this object only: they are never written to a storage, an
 * address or the document, and a reload forgets them. Scripts cannot read the cookie of a session.
 */
export type Session =
  | {
      /** The host's own session: the browser sends its cookie. */
      readonly kind: 'host';
      /** The account whose session it was at first, as a mark that the service made of it. */
      readonly account?: string;
    }
  | {
      /** A session of the token service, which the browser keeps in a cookie. */
      readonly kind: 'own';
      readonly username: string;
      /** As for the host's. */
      readonly account?: string;
    }
  | {
      /** A user name and a password, sent with each call. */
      readonly kind: 'basic';
      readonly username: string;
      readonly authorization: string;
    };

export const HOST_SESSION: Session = { kind: 'host' };

/** The name of the person who signed in here; `undefined` for a session of the host. */
export function usernameOf(session: Session): string | undefined {
  return session.kind === 'host' ? undefined : session.username;
}

export function basicSession(username: string, password: string): Session {
  const bytes = new TextEncoder().encode(`${username}:${password}`);
  const authorization = `Basic ${btoa(String.fromCharCode(...bytes))}`;
  return { kind: 'basic', username, authorization };
}
