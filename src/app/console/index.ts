export { type TokenConsole, type TokenConsoleOptions, tokenConsole } from './handler.ts';
export type { PluralText } from './page/phrases.ts';
export { type ConsoleTexts, ENGLISH_TEXTS } from './page/texts.ts';
