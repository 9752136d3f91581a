import type { ResealReport } from '../../../token/record.ts';
import { keyFileOf, readUsableKeys } from '../../server/files/key-file.ts';
import { readSettings, STORE_SETTINGS } from '../../server/settings.ts';
import { type OpenStore, storeTarget, withStore } from '../../server/stores/open.ts';
import { count } from '../../terminal/layout.ts';
import { command, type Outcome } from '../command.ts';
import { progressOn } from '../progress.ts';
import { KEYS_FLAG, STORE_FAULT, STORE_FLAGS } from './store-flags.ts';

/** Encrypts the stored secrets again. */
export const RESEAL = command({
  name: 'reseal',
  summary: 'encrypts stored secrets again, with the active key',
  about: `After a rotation of keys, secrets that are stored to be shown again are still encrypted with an
older key. This command brings them to the active one, so that values can be shown without the
whole older key. The values themselves stay, and those of an older key still need it to be verified.

All services need the new key before. It reads all records once, while services run, and may be
stopped and run again: what is done is skipped. doctor --full counts what each key still seals.`,
  flags: { ...STORE_FLAGS, keys: KEYS_FLAG },
  json: '{ records, resealed, unreadable, missed } where unreadable are those that no key of the file opens, and missed those that others kept changing',
  exits: {
    0: 'all secrets are encrypted with the active key',
    1: `${STORE_FAULT}, or the keys cannot be used`,
    3: 'some are not: no key of the file opens them, or others kept changing them',
  },
  example: {
    call: 'reseal --data data',
    output: 'encrypted 2 of 3 records again in SQLite in data/tokens.db',
  },
  async run(_, flags) {
    const settings = readSettings([...STORE_SETTINGS, 'keys'], flags);
    const keys = readUsableKeys(keyFileOf(settings));
    const target = storeTarget(settings);
    const progress = progressOn(process.stderr);
    const onProgress = progress.of('read');
    const options = { onProgress: ({ records }: ResealReport) => onProgress(records) };
    try {
      const report = await withStore(target, async ({ store }: OpenStore) => {
        const { TokenService } = await import('../../../service.ts');
        return new TokenService({ store, keys, prefix: 'tw' }).reseal(options);
      });
      return outcomeOf(report, target.name);
    } finally {
      progress.end();
    }
  },
});

function outcomeOf(report: ResealReport, name: string): Outcome {
  const { records, resealed, unreadable, missed } = report;
  const text = `encrypted ${resealed} of ${count(records, 'record')} again in ${name}`;
  const notes = [
    ...(unreadable > 0
      ? [`no key of the file opens the secrets of ${count(unreadable, 'record')}, which stay`]
      : []),
    ...(missed > 0 ? [`others kept changing ${count(missed, 'record')}: run it again`] : []),
  ];
  return {
    text,
    json: report,
    ...(notes.length > 0 && { notes: notes.join('\n'), isNegative: true }),
  };
}
