import { TokenError } from '../../index.ts';

/**
 * Loads a package that only some settings need, and that people install beside tokenwright.
 *
 * @param what needs it, for the message
 * @throws {TokenError} `invalid_options` with the command that installs it
 */
export async function optionalPackage<Module>(
  name: string,
  what: string,
  load: () => Promise<Module>,
): Promise<Module> {
  try {
    return await load();
  } catch (error) {
    if (!isAbsent(error, name)) throw error;
    throw new TokenError(
      'invalid_options',
      `${what} needs the package ${name} beside tokenwright: npm install ${name}`,
    );
  }
}

function isAbsent(error: unknown, name: string): boolean {
  if (!(error instanceof Error) || !('code' in error)) return false;
  return error.code === 'ERR_MODULE_NOT_FOUND' && error.message.includes(`'${name}'`);
}
