import { isServiceLink } from '../server/service-links.ts';
import { VARIABLES } from '../server/settings.ts';
import { nearest, usageError } from '../terminal/errors.ts';

const PREFIX = 'TOKENWRIGHT_';

/**
 * Refuses a variable with our prefix that no command reads: a misspelled setting would be ignored,
 * and its default taken.
 *
 * @throws {CliError} naming the variable and the one that was meant, never its value
 */
export function checkVariables(environment: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith(PREFIX) || !value || VARIABLES.includes(name)) continue;
    if (isServiceLink(name, value)) continue;
    const ends = VARIABLES.map((variable) => variable.replace(PREFIX, ''));
    const meant = nearest(name.slice(PREFIX.length), ends);
    const hint =
      meant === undefined
        ? 'see tokenwright serve --help for those that there are'
        : `did you mean ${VARIABLES[ends.indexOf(meant)]}?`;
    throw usageError(`no command knows the variable ${name}; ${hint}`);
  }
}

/** A password may have quotes of its own. */
const MAY_BE_QUOTED = 'TOKENWRIGHT_PASSWORD';

/**
 * One warning for each variable that is still in its quotes: a shell removes them, but an env file of
 * Docker, for example, keeps them. Never with its value.
 */
export function quoteWarnings(environment: Readonly<Record<string, string | undefined>>): string[] {
  return VARIABLES.filter((name) => name !== MAY_BE_QUOTED)
    .filter((name) => /^(["']).*\1$/s.test(environment[name] ?? ''))
    .map((name) => `${name} begins and ends with a quote, which counts as part of it: remove both`);
}
