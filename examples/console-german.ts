// The console in another language: texts of your own, with the plurals, numbers and times of the language.
import { type ConsoleTexts, ENGLISH_TEXTS, tokenConsole } from 'tokenwright/console';

const texts: ConsoleTexts = {
  shell: { title: 'Zugangsschlüssel', tokens: 'Schlüssel', signOut: 'Abmelden' },
  list: {
    new: 'Neuer Schlüssel',
    shown: { one: '{count} Schlüssel', other: '{count} Schlüssel' },
  },
  rights: {
    // One form for each plural of the language; "other" is for all that are missing.
    endpoints: { one: '{count} Endpunkt', other: '{count} Endpunkte' },
    ofHost: '{endpoints} von {host}',
  },
  errors: {
    // Errors of the service, by their code. Without a text, people see its English message.
    codes: { quota_exceeded: 'Sie haben zu viele Schlüssel.', internal: 'Fehler: {message}' },
  },
};

const page = tokenConsole({ basePath: '/console', api: '/auth', language: 'de', texts });
const html = await page(new Request('https://app.example/console')).text();
console.log(/<html.*>/.exec(html)?.[0]); // <html lang="de" dir="ltr">
console.log(/<title>.*<\/title>/.exec(html)?.[0]); // <title>Zugangsschlüssel</title>

// What can be translated, by the same keys.
console.log(ENGLISH_TEXTS.list.shown.other); // {count} tokens shown

// A key that does not exist, or a place that the text does not have, is refused at the start.
try {
  const shown = 'Alle {coutn} Schlüssel';
  tokenConsole({ basePath: '/console', api: '/auth', texts: { list: { shown } } });
} catch (error) {
  console.log((error as Error).message); // texts.list.shown cannot have {coutn}; it has {count}
}
