import { readFileSync } from 'node:fs';
import { nearestName } from '../../scope/nearest.ts';
import { inputError, usageError } from '../terminal/errors.ts';
import { asObject, parseJson, quote } from '../terminal/inputs.ts';
import type { Kind } from '../terminal/kinds.ts';

/**
 * Names of variables that Kubernetes and Docker set in each container for every service that it may
 * call, by the name of the service: `tokenwright-metrics` makes `TOKENWRIGHT_METRICS_PORT`.
 */
const LINK_NAME = /_(?:SERVICE_HOST|SERVICE_PORT|PORT_\d+_(?:TCP|UDP|SCTP)|ENV)(?:_|$)/;
const LINK_PORT = /^(?:tcp|udp|sctp):\/\/\S+:\d{1,5}$/;

/** Whether a variable describes a service that happens to be named like ours, and is not a setting. */
export function isServiceLink(name: string, value: string): boolean {
  if (LINK_NAME.test(name)) return true;
  // Docker gives the path of a link, such as /web/tokenwright.
  if (name.endsWith('_NAME')) return value.startsWith('/');
  return name.endsWith('_PORT') && LINK_PORT.test(value);
}

/** A variable, unless it is empty or describes a service of the cluster. */
export function variableIn(environment: NodeJS.ProcessEnv, name: string): string | undefined {
  const value = environment[name];
  return value && !isServiceLink(name, value) ? value : undefined;
}

/** The variable that names a file with a secret, as secrets of Docker and Kubernetes are given. */
export function fileVariableOf(name: string): string {
  return `${name}_FILE`;
}

/**
 * A variable that holds a secret, or the text of the file that its other form names.
 *
 * @throws {CliError} if both are set, or the file does not hold one line; never with its text
 */
export function secretIn(environment: NodeJS.ProcessEnv, name: string): string | undefined {
  const value = variableIn(environment, name);
  const fileVariable = fileVariableOf(name);
  const path = variableIn(environment, fileVariable);
  if (path === undefined) return value;
  if (value !== undefined) {
    throw usageError(`${name} and ${fileVariable} are both set: unset one of them`);
  }
  const secret = readText(path, fileVariable).replace(/\r?\n$/, '');
  if (secret !== '' && !/[\r\n]/.test(secret)) return secret;
  throw inputError(`${quote(path)} (${fileVariable}) must hold one line, and nothing else`);
}

/**
 * Reads a file of settings: a JSON object whose names are those of the flags.
 *
 * @param kinds the kind of each setting, by the name of its flag
 * @returns what `read` of each kind takes
 * @throws {CliError} naming the member that is not a setting, or has the wrong type
 */
export function readConfig(
  path: string,
  kinds: ReadonlyMap<string, Kind<unknown>>,
): Readonly<Record<string, unknown>> {
  const content = parseJson(readText(path, '--config'), path, usageError);
  if (typeof content !== 'object' || content === null || Array.isArray(content)) {
    throw usageError(`${path} must be a JSON object of settings, such as {"port": 8787}`);
  }
  const members = Object.entries(asObject(content)).map(([name, value]) => {
    const kind = kinds.get(name);
    if (kind === undefined) throw unknownMember(name, path, kinds);
    return [name, givenIn(value, kind, memberName(name, path))];
  });
  return Object.fromEntries(members);
}

/** Names a member of a file of settings, for messages. */
export function memberName(name: string, path: string): string {
  return `"${name}" in ${path}`;
}

function unknownMember(
  name: string,
  path: string,
  kinds: ReadonlyMap<string, Kind<unknown>>,
): Error {
  const known = nearestName(name, [...kinds.keys()]);
  const hint =
    known === undefined
      ? 'the names are those of the flags: see tokenwright serve --help'
      : `did you mean "${known}"?`;
  return usageError(`${path}: ${quote(name)} is not a setting; ${hint}`);
}

/** A member of a file of settings as a flag would give it. */
function givenIn(value: unknown, { flag }: Kind<unknown>, name: string): unknown {
  const isText = (each: unknown) => typeof each === 'string' && each !== '';
  if (flag.type === 'boolean') {
    if (typeof value === 'boolean') return String(value);
    throw usageError(`${name} must be true or false, without quotes`);
  }
  if (flag.multiple === true) {
    if (Array.isArray(value) && value.every(isText)) return value;
    throw usageError(`${name} must be an array of strings, none of them empty`);
  }
  if (isText(value) || typeof value === 'number') return String(value);
  throw usageError(`${name} must be a number, or a string that is not empty`);
}

function readText(path: string, setting: string): string {
  try {
    return readFileSync(path, 'utf8').replace(/^\ufeff/, '');
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    const reason = READ_FAULTS.get(code) ?? code;
    throw inputError(`the file ${quote(path)} of ${setting} cannot be read: ${reason}`);
  }
}

const READ_FAULTS: ReadonlyMap<string, string> = new Map([
  ['ENOENT', 'it does not exist'],
  ['ENOTDIR', 'it does not exist'],
  ['EISDIR', 'it is a folder'],
  ['EACCES', 'this user may not read it'],
]);
