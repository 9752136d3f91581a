import { nearest, usageError } from './errors.ts';
import { VARIABLES } from './settings.ts';

const PREFIX = 'TOKENWRIGHT_';

/**
 * The variables that Kubernetes sets in each container for a service that is called `tokenwright`,
 * or `tokenwright-` and more.
 */
const OF_KUBERNETES = /_(?:SERVICE_HOST|SERVICE_PORT|PORT_\d+_(?:TCP|UDP|SCTP))(?:_|$)/;
const KUBERNETES_PORT = /^(?:tcp|udp|sctp):\/\//;

/**
 * Refuses a variable with our prefix that no command reads: a misspelled setting would be ignored,
 * and its default taken.
 *
 * @throws {CliError} naming the variable and the one that was meant, never its value
 */
export function checkVariables(environment: Readonly<Record<string, string | undefined>>): void {
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith(PREFIX) || !value || VARIABLES.includes(name)) continue;
    if (isOfKubernetes(name, value)) continue;
    const ends = VARIABLES.map((variable) => variable.replace(PREFIX, ''));
    const meant = nearest(name.slice(PREFIX.length), ends);
    const hint =
      meant === undefined
        ? 'see tokenwright serve --help for those that there are'
        : `did you mean ${VARIABLES[ends.indexOf(meant)]}?`;
    throw usageError(`no command knows the variable ${name}; ${hint}`);
  }
}

function isOfKubernetes(name: string, value: string): boolean {
  return OF_KUBERNETES.test(name) || (name.endsWith('_PORT') && KUBERNETES_PORT.test(value));
}
