import { openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fileSink, LineWriter, type Sink } from '../../../../src/app/server/logs/line-writer.ts';
import { newFolder } from '../../cli/support.ts';

/** A writer on a sink whose writes settle when the test says so. */
function setUp() {
  const texts: string[] = [];
  const pending: { resolve(): void; reject(error: Error): void }[] = [];
  const troubles: unknown[] = [];
  const sink: Sink = {
    write: (text) =>
      new Promise((resolve, reject) => {
        texts.push(text);
        pending.push({ resolve, reject });
      }),
    close: async () => {},
  };
  const writer = new LineWriter(sink, {
    lostLine: (count) => `lost ${count}`,
    onTrouble: (error) => troubles.push(error),
  });
  const settle = async (how: 'resolve' | 'reject') => {
    pending.shift()?.[how](new Error('full'));
    await new Promise((done) => setImmediate(done));
  };
  return { writer, texts, troubles, settle };
}

describe('a line writer', () => {
  it('writes in order, one write at a time, and batches lines that arrive meanwhile', async () => {
    const { writer, texts, settle } = setUp();

    for (const line of ['a', 'b', 'c']) writer.write(line);
    expect(texts).toEqual(['a\n']);
    await settle('resolve');
    expect(texts).toEqual(['a\n', 'b\nc\n']);
    await settle('resolve');
    writer.write('d');
    expect(texts).toEqual(['a\n', 'b\nc\n', 'd\n']);
  });

  it('buffers 1 MiB during a slow write, then writes how many lines it lost', async () => {
    const { writer, texts, settle } = setUp();
    const line = 'x'.repeat(1023);

    for (let i = 0; i < 1030; i++) writer.write(line);
    await settle('resolve');
    expect(texts[1]).toHaveLength(1023 * 1024 + 'lost 6\n'.length);
    expect(texts[1]?.endsWith('\nlost 6\n')).toBe(true);
    await settle('resolve');
    writer.write(line);
    expect(texts[2]).toBe(`${line}\n`);
  });

  it('limits its buffer in bytes, not in characters', () => {
    const { writer, texts } = setUp();

    writer.write('🐤'.repeat(262_144));
    expect(texts).toEqual([]);
    writer.write('🐤'.repeat(262_143));
    expect(texts).toHaveLength(1);
  });

  it('reports an error once, continues, and writes how many lines it lost once it works again', async () => {
    const { writer, texts, troubles, settle } = setUp();

    for (const line of ['a', 'b', 'c']) {
      writer.write(line);
      await settle('reject');
    }
    expect(troubles).toHaveLength(1);
    writer.write('d');
    await settle('resolve');
    expect(texts.at(-1)).toBe('d\nlost 3\n');
    writer.write('e');
    await settle('reject');
    expect(troubles).toHaveLength(2);
  });

  it('closes once everything is written', async () => {
    const { writer, texts, settle } = setUp();
    writer.write('a');
    writer.write('b');
    let isClosed = false;

    const closing = writer.close().then(() => {
      isClosed = true;
    });
    await settle('resolve');
    expect(isClosed).toBe(false);
    await settle('resolve');
    await closing;
    expect(texts).toEqual(['a\n', 'b\n']);
  });
});

describe('fileSink', () => {
  it('appends to its file, even after another process has appended', async () => {
    const path = join(newFolder(), 'lines');
    const sink = await fileSink(path);

    await sink.write('a\n');
    writeSync(openSync(path, 'a'), 'b\n');
    await sink.write('c\n');
    await sink.close();

    expect(readFileSync(path, 'utf8')).toBe('a\nb\nc\n');
  });
});
