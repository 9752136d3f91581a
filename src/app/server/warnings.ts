import { type AddressInfo, isIPv4 } from 'node:net';
import type { KeyOptions, StoreFinding } from '../../index.ts';
import { weakKeys } from './files/key-file.ts';
import type { Parts } from './parts.ts';
import { messageOf, type OpenStore } from './stores/open.ts';

/** What is known once the store is open. */
interface StartFacts {
  readonly address: AddressInfo;
  readonly keys: readonly KeyOptions[];
  readonly findings: readonly StoreFinding[];
  /** Absent if uses are not recorded. */
  readonly usagePlace: OpenStore['usage'] | undefined;
}

/** Lists risks that do not stop the service. */
export function startWarnings(
  { files, secretFiles, store, shown, isTrial }: Parts,
  { address, keys, findings, usagePlace }: StartFacts,
): string[] {
  const databases = [store.target.file, usagePlace?.file].filter((file) => file !== undefined);
  return [
    ...files.openFiles([...databases, ...secretFiles]),
    ...weakKeys(keys),
    ...addressWarnings(address, { isExample: shown.isExample, isTrial }),
    ...findings.map(messageOf),
  ];
}

/**
 * Lists risks of its address that do not stop the service: their fix is a decision of its operator.
 *
 * @param isTrial whether it looks like a first look, but for its address
 */
function addressWarnings(
  { address }: AddressInfo,
  { isExample, isTrial }: { readonly isExample: boolean; readonly isTrial: boolean },
): string[] {
  const isLocal = address === '::1' || (isIPv4(address) && address.startsWith('127.'));
  const warnings = isLocal
    ? []
    : [
        `it listens on ${address}, which other machines can reach, and speaks plain HTTP; put a proxy with TLS in front of it`,
      ];
  if (!isExample || (isTrial && isLocal)) return warnings;
  return [
    ...warnings,
    'tokens can have only the scopes of an example, acme.example, because no catalog is given; give yours with --catalog (TOKENWRIGHT_CATALOG)',
  ];
}
