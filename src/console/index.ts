export { type TokenConsole, type TokenConsoleOptions, tokenConsole } from './handler.ts';
