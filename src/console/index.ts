export type { PluralText } from './app/phrases.ts';
export { type ConsoleTexts, ENGLISH_TEXTS } from './app/texts.ts';
export { type TokenConsole, type TokenConsoleOptions, tokenConsole } from './handler.ts';
