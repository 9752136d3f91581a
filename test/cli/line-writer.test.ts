import { openSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { fileSink, LineWriter, type Sink } from '../../src/cli/line-writer.ts';
import { newFolder } from './support.ts';

/** A sink whose writes end when they are told to. */
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
  it('writes in order, one write at a time, and what came meanwhile in one', async () => {
    const { writer, texts, settle } = setUp();

    for (const line of ['a', 'b', 'c']) writer.write(line);
    expect(texts).toEqual(['a\n']);
    await settle('resolve');
    expect(texts).toEqual(['a\n', 'b\nc\n']);
    await settle('resolve');
    writer.write('d');
    expect(texts).toEqual(['a\n', 'b\nc\n', 'd\n']);
  });

  it('keeps 1 MiB while a write takes long, and tells how much it lost after that', async () => {
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

  it('counts bytes, not characters', () => {
    const { writer, texts } = setUp();

    writer.write('🐤'.repeat(262_144));
    expect(texts).toEqual([]);
    writer.write('🐤'.repeat(262_143));
    expect(texts).toHaveLength(1);
  });

  it('tells of trouble once, goes on, and says what was lost when it works again', async () => {
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

  it('is closed when all is written', async () => {
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

describe('a file', () => {
  it('is added to, also by others meanwhile', async () => {
    const path = join(newFolder(), 'lines');
    const sink = await fileSink(path);

    await sink.write('a\n');
    writeSync(openSync(path, 'a'), 'b\n');
    await sink.write('c\n');
    await sink.close();

    expect(readFileSync(path, 'utf8')).toBe('a\nb\nc\n');
  });
});
