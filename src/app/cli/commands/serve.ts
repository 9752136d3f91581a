import { setFlagsFromString } from 'node:v8';
import { readSettings, SERVE_FLAGS, SERVE_SETTINGS, settingsHelp } from '../../server/settings.ts';
import { command } from '../command.ts';

export const SERVE = command({
  name: 'serve',
  operands: [],
  summary: 'runs the token service',
  about: `Each flag stands beside its environment variable. A flag wins over its variable, and both win over
the file of --config.

${settingsHelp()}

It does not start while other users can read or change keys.json or account.json of the data. It
warns on standard error of other files that are open to others, of keys that do not look random,
and of an address that other machines can reach: it speaks plain HTTP.

A secret, such as the URL of --store, can be in a file: add _FILE to the name of its variable, and set it to the path. A call has 15 s for its headers, of 16 KiB at most, and 30 s
for all of it. Of wrong passwords, these are answered in 15 minutes: 100 for a user from one address,
100 for a user from all addresses together from which the user has not signed in, and 1000 from one
address; after that a caller has to wait. A variable that begins with TOKENWRIGHT_ and is
none of these, nor of the other commands, is refused.

To stop it, press Ctrl-C or send SIGTERM. It takes new connections until none has come for 150 ms,
but for at most 1 s, answers what is in progress, for at most 6 s after the signal, closes the store,
and ends with 0. A second signal ends it immediately. On SIGHUP it reads keys, catalog, presets and accounts
again, and keeps what it has if something is wrong with them. If a supervisor starts it, let it start
node_modules/.bin/tokenwright serve, not npx: on SIGTERM npx ends, and leaves the service behind.`,
  flags: {
    ...SERVE_FLAGS,
    check: {
      type: 'boolean',
      help: 'only check whether it would start: reads the settings, the keys, the catalog, the presets and the accounts, and examines the store. It listens nowhere, and makes no file and no table, so the tables of a database have to exist',
    },
  },
  exits: {
    0: 'it was stopped; with --check, it would start',
    1: 'a file, the store or the address cannot be used',
  },
  example: {
    call: 'serve --catalog openapi.json --port 8787',
    output: 'tokenwright listens on http://127.0.0.1:8787',
  },
  async run(_, { check, ...flags }) {
    if (check === true) {
      const { checkStart } = await import('../../server/check.ts');
      const text = await checkStart(readSettings(SERVE_SETTINGS, flags));
      return { text, json: text };
    }
    // Until the service can read its files again, this signal must not end it.
    process.on('SIGHUP', () => {});
    // V8 lets the heap grow to four times what is alive before it collects. With twice, a service
    // that is sent long lists of scopes takes a fifth less memory.
    setFlagsFromString('--heap-growing-percent=100');
    // Loaded late: the other commands need no server and start sooner.
    const { serve } = await import('../../server/start.ts');
    await serve(readSettings(SERVE_SETTINGS, flags));
    return undefined;
  },
});
