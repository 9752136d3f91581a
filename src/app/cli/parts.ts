import { indent, jsonText } from '../terminal/layout.ts';
import type { Part } from './command.ts';

/** Prints an answer part by part: the texts below each other, or the elements of a JSON array. */
export class Parts {
  readonly #write: (text: string) => Promise<void>;
  readonly #isJson: boolean;
  #count = 0;

  constructor(write: (text: string) => Promise<void>, isJson: boolean) {
    this.#write = write;
    this.#isJson = isJson;
  }

  async print({ text, json }: Part): Promise<void> {
    const start = this.#count === 0 ? '[' : ',';
    this.#count += 1;
    await this.#write(this.#isJson ? `${start}\n${indent(jsonText(json))}` : `${text}\n`);
  }

  async end(): Promise<void> {
    if (this.#isJson) await this.#write(this.#count === 0 ? '[]\n' : '\n]\n');
  }
}
