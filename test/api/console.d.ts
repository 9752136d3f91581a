// What tokenwright/console declares, as published. Written by: npm run api

export interface TokenConsole {
  (request: Request): Response;
  readonly basePath: string;
}

export interface TokenConsoleOptions {
  readonly basePath: string;
  readonly api: string;
  readonly title?: string | undefined;
  readonly brand?: string | undefined;
}

export declare function tokenConsole(options: TokenConsoleOptions): TokenConsole;
