import { type Names, renameIn } from '../../text/wording.ts';

/** An error whose message is meant for the person at the terminal. */
export class CliError extends Error {
  /** 2 if the command line or a variable is wrong, else 1. */
  readonly exitCode: 1 | 2;

  constructor(message: string, exitCode: 1 | 2) {
    super(message);
    this.exitCode = exitCode;
  }
}

/** A mistake in the words of a command or in a variable. */
export function usageError(message: string): CliError {
  return new CliError(message, 2);
}

/** A file, standard input or a service that cannot be used. */
export function inputError(message: string): CliError {
  return new CliError(message, 1);
}

/** The flag for each member that an error of the library can name. */
const FLAGS: Names = {
  account: '--account',
  scope: '--scope',
  scopes: '--scope',
  addScopes: '--add-scope',
  removeScopes: '--remove-scope',
  ttl: '--ttl',
  ttlSeconds: '--ttl',
  expire: '--expire',
  expiresAt: '--expire',
  activate: '--activate',
  graceSeconds: '--grace',
  cancel: '--cancel',
  name: '--name',
  parent: '--parent',
  metadata: '--metadata',
  'limits.addresses': '--address',
  'limits.uses': '--uses',
  'limits.rate.uses': '--rate',
  'limits.rate.seconds': '--rate',
};

/**
 * Replaces the name of a member in an error message by the flag of the command line.
 *
 * @param words the command line. The library gets `--ttl` of a change as an expiry, and names that;
 * the message has to name `--ttl`
 */
export function withFlag(
  message: string,
  member: unknown,
  words: readonly string[] = process.argv,
): string {
  if (typeof member !== 'string' || !Object.hasOwn(FLAGS, member)) return message;
  const flag = FLAGS[member] as string;
  const isTtl = flag === '--expire' && words.some((word) => /^--ttl(?:=|$)/.test(word));
  return renameIn(message, member, isTtl ? '--ttl' : flag);
}
