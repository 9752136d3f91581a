import { ambiguityIn, MAX_NAMED_DEPTH, parseJsonText } from '../text/json.ts';

/** What JSON-RPC calls the faults of a message. */
export const FAULT_CODES = {
  invalid_json: -32_700,
  invalid_message: -32_600,
  unknown_method: -32_601,
} as const;

/** Why a message is not one that the server could answer. */
export class MessageFault extends Error {
  readonly reason: keyof typeof FAULT_CODES;
  /** That of the message, as far as it could be read. */
  readonly id: string | number | null;

  constructor(
    reason: keyof typeof FAULT_CODES,
    message: string,
    { id }: { readonly id?: unknown } = {},
  ) {
    super(message);
    this.reason = reason;
    this.id = typeof id === 'string' || typeof id === 'number' ? id : null;
  }
}

/** A message of JSON-RPC: a call, if it has a method, and else an answer. */
export interface JsonRpcMessage {
  readonly id?: unknown;
  readonly method?: string;
  readonly params?: unknown;
}

/**
 * Reads one message of JSON-RPC strictly: there is only one way to read it, and what comes later reads the
 * same.
 *
 * @throws {MessageFault}
 */
export function readMessage(text: string): JsonRpcMessage {
  const message = parse(text);
  if (!isObject(message)) throw invalid('the body must be one JSON-RPC message, and not a batch');
  const ambiguity = ambiguityIn(text);
  if (ambiguity !== undefined) throw invalid(AMBIGUITIES[ambiguity]);
  const { jsonrpc, id, method } = message;
  if (jsonrpc !== '2.0') throw invalid('jsonrpc must be "2.0"', message);
  if ('method' in message) {
    if (typeof method !== 'string') throw invalid('method must be a text', message);
    const isCalled = typeof id === 'string' || typeof id === 'number' || !('id' in message);
    if (!isCalled) throw invalid('id must be a text or a number', message);
  } else if (!('result' in message || 'error' in message)) {
    throw invalid('a message must have a method, a result or an error', message);
  }
  return message as JsonRpcMessage;
}

const AMBIGUITIES = {
  duplicate: 'an object of the message has a member twice',
  prototype: 'the message has a member __proto__',
  depth: `the message is nested deeper than ${MAX_NAMED_DEPTH} levels`,
} as const;

function parse(text: string): unknown {
  try {
    return parseJsonText(text);
  } catch {
    throw new MessageFault('invalid_json', 'the body must be JSON in UTF-8');
  }
}

function invalid(fault: string, message?: { readonly id?: unknown }): MessageFault {
  return new MessageFault('invalid_message', fault, message);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
