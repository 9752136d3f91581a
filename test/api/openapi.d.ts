// What tokenwright/openapi declares, as published. Written by: npm run api

import type { EndpointWords, Scope, ScopeCatalog, ScopeDiff } from 'tokenwright/scope';

export interface CatalogDiff extends ScopeDiff {
  readonly added: readonly string[];
  readonly removed: readonly string[];
  readonly kept: readonly string[];
  readonly tokens: readonly TokenChange[];
  readonly isBreaking: boolean;
}

export interface OpenApiEntry {
  readonly scope: string;
  readonly operations: readonly OpenApiOperation[];
}

export interface OpenApiOptions {
  readonly granularity?: 'operation' | 'prefix' | undefined;
  readonly hosts?: readonly string[] | undefined;
  readonly rootName?: string | undefined;
  readonly root?: string | URL | undefined;
  readonly skip?: boolean | undefined;
}

export interface OpenApiReading {
  readonly catalog: ScopeCatalog;
  readonly entries: readonly OpenApiEntry[];
  readonly deprecated: readonly string[];
  readonly merged: readonly OpenApiEntry[];
  readonly skipped: readonly string[];
}

export interface TokenScopes {
  readonly id: string;
  readonly scopes: readonly string[];
  readonly requested: readonly string[];
}

export declare function catalogDiff(before: Iterable<Scope | string>, after: Iterable<Scope | string>, options?: {
  readonly tokens?: Iterable<TokenScopes> | undefined;
}): CatalogDiff;

export declare function catalogFromOpenApi(documents: unknown, options?: OpenApiOptions): Promise<ScopeCatalog>;

export declare function readOpenApi(documents: unknown, options?: OpenApiOptions): Promise<OpenApiReading>;

// Not exported, but part of the above:

interface OpenApiOperation extends EndpointWords {
  readonly document: number;
  readonly method: string;
  readonly path: string;
  readonly deprecated: boolean;
}

interface TokenChange {
  readonly id: string;
  readonly lost: readonly string[];
  readonly kept: readonly string[];
  readonly gained: readonly string[];
}
