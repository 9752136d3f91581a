/** Networks of one user that a process remembers. @bound */
export const MAX_KNOWN_NETWORKS = 8;

/** Users whose networks of earlier sign-ins a process remembers. @bound */
export const MAX_KNOWN_USERS = 10_000;

/**
 * Remembers from which networks users have signed in: the last ones of the last users. In the memory of the
 * process, so that a restart forgets them.
 */
export class KnownNetworks {
  /** Networks by user; of both, the latest is last. */
  readonly #networks = new Map<string, Set<string>>();

  /** Whether the user has signed in from this network. An empty one is that of everybody, and never known. */
  has(user: string, network: string): boolean {
    return this.#networks.get(user)?.has(network) === true;
  }

  add(user: string, network: string): void {
    if (network === '') return;
    const networks = this.#networks.get(user) ?? new Set();
    addLast(networks, network, MAX_KNOWN_NETWORKS);
    this.#networks.delete(user);
    this.#networks.set(user, networks);
    dropFirst(this.#networks, MAX_KNOWN_USERS);
  }
}

function addLast(set: Set<string>, member: string, most: number): void {
  set.delete(member);
  set.add(member);
  dropFirst(set, most);
}

function dropFirst(entries: Set<string> | Map<string, unknown>, most: number): void {
  const [first] = entries.keys();
  if (entries.size > most && first !== undefined) entries.delete(first);
}
