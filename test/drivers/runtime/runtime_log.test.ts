// Reading and trimming what units print.
import { appendFileSync, readFileSync, statSync, truncateSync } from 'node:fs';
import path from 'node:path';
import { driverContext } from '../../../core/driver';
import type { LogChunk } from '../../../drivers/runtime';
import { openTrial, until, withinMs, type Trial } from '../../support/builds/runtime';

jest.setTimeout(60_000);

let trial: Trial;
beforeAll(async () => void (trial = await openTrial({ sandbox: 'none' })));
afterAll(async () => {
  await trial.close();
  expect(trial.errors).toEqual([]);
});

const stop = async (id: string) =>
  trial.runtime.stop((await trial.runtime.find(id))!, { grace_ms: 1_000 }, driverContext(withinMs));
const texts = (chunk: LogChunk) => chunk.lines.map(({ text }) => text);
const fileOf = (id: string, name: 'out' | 'err') => path.join(trial.options.directory, id, name);

/** A unit that only waits: the test writes its log. */
async function silent(id: string): Promise<void> {
  await trial.start(trial.spec(id, 'exec sleep 300'));
}

test('lines of both streams, and positions that hold a partial line back', async () => {
  await trial.start(
    trial.spec(
      'ins_lines',
      'echo one; echo two >&2; printf half; while [ ! -f go ]; do sleep 0.05; done; echo " done"; printf end',
    ),
  );
  await until(() => statSync(fileOf('ins_lines', 'out')).size >= 8 && statSync(fileOf('ins_lines', 'err')).size > 0);
  const first = await trial.runtime.readLog('ins_lines', null);
  expect(first).toMatchObject({
    lines: [
      { stream: 'stdout', text: 'one' },
      { stream: 'stderr', text: 'two' },
    ],
    more: false,
  });
  expect(await trial.runtime.readLog('ins_lines', first.position)).toEqual({
    lines: [],
    position: first.position,
    more: false,
  });
  await trial.reopen();
  appendFileSync(path.join(trial.options.directory, 'ins_lines/files/go'), '');
  await trial.ended((await trial.runtime.find('ins_lines'))!);
  const rest = await trial.runtime.readLog('ins_lines', first.position);
  expect(texts(rest)).toEqual(['half done', 'end']);
  expect(texts(await trial.runtime.readLog('ins_lines', rest.position))).toEqual([]);
});

test('carriage returns, NUL and what is no UTF-8', async () => {
  await trial.run(
    trial.spec('ins_clean', `printf 'dos\\r\\n10%%\\r20%%\\r\\n\\na\\000b\\nx\\377y\\ngr\\303\\274n\\n'`),
  );
  expect(texts(await trial.runtime.readLog('ins_clean', null))).toEqual([
    'dos',
    '10%',
    '20%',
    '',
    'ab',
    'x\uFFFDy',
    'grün',
  ]);
});

test('long lines come in parts that cut no character', async () => {
  await silent('ins_long');
  const line = 'ü'.repeat(30_000);
  appendFileSync(fileOf('ins_long', 'out'), `a${line}`);
  const part = await trial.runtime.readLog('ins_long', null);
  expect(texts(part).length).toBe(3);
  appendFileSync(fileOf('ins_long', 'out'), 'end\n');
  const rest = await trial.runtime.readLog('ins_long', part.position);
  expect([...texts(part), ...texts(rest)].join('')).toBe(`a${line}end`);
  expect(texts(part).every((text) => Buffer.byteLength(text) <= 16 * 1024)).toBe(true);
  await stop('ins_long');
});

test('much is read in pieces, without loss', async () => {
  await trial.run(
    trial.spec(
      'ins_much',
      'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); echo "line $i of many, with some text to make it longer"; done',
      { limits: { output_bytes: 10 << 20 } },
    ),
  );
  const chunk = await trial.runtime.readLog('ins_much', null);
  expect(chunk.more).toBe(true);
  expect(Buffer.byteLength(texts(chunk).join('\n'))).toBeLessThanOrEqual(256 * 1024);
  const lines = await trial.lines('ins_much');
  expect(lines.length).toBe(20_000);
  expect(lines.at(-1)).toMatch(/^line 20000 /);
});

test('what was trimmed is gone from the disk, positions stay, and nothing after is lost', async () => {
  await silent('ins_trim');
  const block = Array.from({ length: 20_000 }, (_, i) => `line ${i} ${'x'.repeat(50)}\n`).join('');
  appendFileSync(fileOf('ins_trim', 'out'), block);
  let position: string | null = null;
  for (let more = true; more;) ({ position, more } = await trial.runtime.readLog('ins_trim', position));
  const before = statSync(fileOf('ins_trim', 'out')).blocks;
  await trial.runtime.trimLog('ins_trim', position!);
  await trial.runtime.trimLog('ins_trim', position!);
  expect(statSync(fileOf('ins_trim', 'out')).blocks).toBeLessThan(before / 10);
  appendFileSync(fileOf('ins_trim', 'out'), 'after\n');
  expect(texts(await trial.runtime.readLog('ins_trim', position))).toEqual(['after']);
  expect(texts(await trial.runtime.readLog('ins_trim', null))).toEqual(['after']);
  await trial.reopen();
  expect(texts(await trial.runtime.readLog('ins_trim', null))).toEqual(['after']);
  await stop('ins_trim');
});

test('a position of an earlier run of the same unit begins anew; an unreadable one too', async () => {
  await trial.run(trial.spec('ins_rerun', 'echo first run, which is longer'));
  const { position } = await trial.runtime.readLog('ins_rerun', null);
  await trial.runtime.destroy('ins_rerun', driverContext(withinMs));
  await trial.run(trial.spec('ins_rerun', 'echo second run, which is longer still'));
  for (const one of [position, 'nonsense', ''])
    expect(texts(await trial.runtime.readLog('ins_rerun', one))).toEqual(['second run, which is longer still']);
});

test('a program that empties its own log goes on being read', async () => {
  await silent('ins_emptied');
  appendFileSync(fileOf('ins_emptied', 'out'), 'one\ntwo\n');
  const { position } = await trial.runtime.readLog('ins_emptied', null);
  truncateSync(fileOf('ins_emptied', 'out'), 0);
  appendFileSync(fileOf('ins_emptied', 'out'), 'new\n');
  expect(texts(await trial.runtime.readLog('ins_emptied', position))).toEqual(['new']);
  await stop('ins_emptied');
});

test('/dev/stdout can be opened anew', async () => {
  await trial.run(trial.spec('ins_reopen', 'echo through > /dev/stdout'));
  expect(await trial.lines('ins_reopen')).toEqual(['through']);
});

// Without a sandbox, a unit of our own user may change all that is ours: docs/SECURITY.md.
(process.getuid?.() === 0 ? test : test.skip)('a unit of another user cannot change its run directory', async () => {
  await trial.run(trial.spec('ins_changing', 'rm -f ../exit ../unit.json ../handle; echo x > ../exit; ls .. | wc -l'));
  expect(JSON.parse(readFileSync(path.join(trial.options.directory, 'ins_changing/unit.json'), 'utf8'))).toMatchObject({
    id: 'ins_changing',
  });
});

test('the log of what never was is empty, trimming it is nothing', async () => {
  expect(await trial.runtime.readLog('ins_never', null)).toMatchObject({ lines: [], more: false });
  await trial.runtime.trimLog('ins_never', '5.5');
});
