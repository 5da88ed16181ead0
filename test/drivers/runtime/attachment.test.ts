// Clients at units: input that outlives its writers, terminals, and output that nobody loses. With real processes.
import { spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { driverContext } from '../../../core/driver';
import { openAttachment, type Attachment } from '../../../drivers/runtime/attachment';
import type { UnitSpec } from '../../../drivers/runtime';
import { openTrial, until, withinMs, type Trial, type Variant } from '../../support/builds/runtime';
import { processesWith } from '../../support/processes/processes';

const hasBubblewrap = spawnSync('bwrap', ['--version']).status === 0;
const variants: [string, Variant][] = [
  ['bubblewrap', { sandbox: 'bubblewrap' }],
  ['no sandbox, no control groups', { sandbox: 'none', limits: 'poll' }],
];

jest.setTimeout(60_000);

describe.each(variants.filter(([, { sandbox }]) => sandbox === 'none' || hasBubblewrap))('in %s', (_name, variant) => {
  let trial: Trial;
  let serial = 0;
  beforeAll(async () => void (trial = await openTrial(variant)));
  afterAll(async () => {
    await trial.close();
    expect(trial.errors).toEqual([]);
  });

  const spec = (command: string, input: UnitSpec['input'], limits: Partial<UnitSpec['limits']> = {}): UnitSpec =>
    trial.spec(`run_${(serial += 1)}`, command, { kind: 'task', own_copy: true, input, limits });

  /** Everything that a unit prints from now on. */
  function follow(attachment: Attachment): { text(): string; end: Promise<number | null | undefined>; stop(): void } {
    const stop = new AbortController();
    let text = '';
    const read = async (): Promise<number | null | undefined> => {
      const output = attachment.output(1 << 20, stop.signal);
      for (;;) {
        const { value, done } = await output.next();
        if (done) return value?.code;
        text += value.bytes.toString();
      }
    };
    return { text: () => text, end: read(), stop: () => stop.abort() };
  }

  const attach = (id: string): Attachment => openAttachment(path.join(trial.root, 'units'), id) as Attachment;

  test('a pipe stays open while writers come and go, and ends when it is ended', async () => {
    const unit = spec('cat; echo after', 'pipe');
    await trial.start(unit);
    const attachment = attach(unit.id);
    const reader = follow(attachment);
    for (const word of ['one', 'two']) {
      const input = await attachment.openInput();
      input?.end(`${word}\n`);
      await until(() => reader.text().includes(word));
      await sleep(100);
    }
    expect(reader.text()).toBe('one\ntwo\n');
    attachment.endInput();
    expect(await reader.end).toBe(0);
    expect(reader.text()).toBe('one\ntwo\nafter\n');
    // The sandbox of a unit that has ended may hold its input for a moment.
    await until(async () => (await attachment.openInput()) === null);
  });

  test('10 MB go through the input whole', async () => {
    const bytes = randomBytes(10_000_000);
    const unit = spec('sleep 0.3; sha256sum', 'pipe');
    await trial.start(unit);
    const attachment = attach(unit.id);
    const reader = follow(attachment);
    const input = await attachment.openInput();
    if (!input) throw new Error('no input');
    input.end(bytes);
    await once(input, 'close');
    attachment.endInput();
    await reader.end;
    expect(reader.text()).toBe(`${createHash('sha256').update(bytes).digest('hex')}  -\n`);
  });

  test('a program that ends without reading leaves nothing behind', async () => {
    const unit = spec('echo at once; exit 3', 'pipe');
    const end = await trial.run(unit);
    expect(end.code).toBe(3);
    await trial.runtime.stop({ ...(await trial.runtime.find(unit.id))! }, { grace_ms: 0 }, driverContext(withinMs));
    await until(() => processesWith(`units/${unit.id}`).length === 0, 3_000);
    expect(await attach(unit.id).openInput()).toBeNull();
  });

  test('/dev/stdin can be opened again', async () => {
    const unit = spec('head -n 1 /dev/stdin', 'pipe');
    await trial.start(unit);
    const attachment = attach(unit.id);
    const reader = follow(attachment);
    (await attachment.openInput())?.end('reopened\n');
    await reader.end;
    expect(reader.text()).toBe('reopened\n');
  });

  test('SIGTERM reaches the program, not what holds its input', async () => {
    const unit = spec(`trap 'echo told; exit 9' TERM; while :; do read -r line; done`, 'pipe');
    const handle = await trial.start(unit);
    const reader = follow(attach(unit.id));
    await sleep(300);
    await trial.runtime.stop(handle, { grace_ms: 5_000 }, driverContext(withinMs));
    expect(await reader.end).toBe(9);
    expect(reader.text()).toBe('told\n');
    expect(processesWith(`units/${unit.id}`)).toEqual([]);
  });

  test('a terminal is one, with its size, its signals and job control', async () => {
    const unit = spec('exec bash --norc --noprofile -i', 'terminal');
    await trial.start(unit);
    const attachment = attach(unit.id);
    const reader = follow(attachment);
    const input = await attachment.openInput();
    if (!input) throw new Error('no input');
    const type = async (text: string, expected: string): Promise<void> => {
      input.write(text);
      await until(() => reader.text().includes(expected), 10_000).catch(() => {
        throw new Error(`expected ${expected} in ${reader.text()}`);
      });
    };
    await type(`PS1='> '; test -t 0 && test -t 1 && test -t 2 && echo is-a"-terminal"\n`, 'is-a-terminal');
    await type('stty size; echo size"-shown"\n', 'size-shown');
    expect(reader.text()).toContain('24 80');
    await attachment.resize({ rows: 50, columns: 132 });
    await type(`trap 'echo win"-ch"' WINCH; stty size; echo size2"-shown"\n`, 'size2-shown');
    expect(reader.text()).toContain('50 132');
    await attachment.resize({ rows: 51, columns: 133 });
    await type('\n', 'win-ch');
    await type('sleep 600\n', 'sleep 600');
    await sleep(300);
    await type('\u0003', '^C');
    await type('echo after"-int"\n', 'after-int');
    await type('sleep 601\n', 'sleep 601');
    await sleep(300);
    await type('\u001a', 'Stopped');
    // A shell with a job that it holds for stopped does not end.
    await type('kill -KILL %1; while jobs %1; do sleep 0.1; done; echo jobs"-shown"\n', 'jobs-shown');
    await type('echo ünïcode 日本\n', 'ünïcode 日本\r\n');
    expect(reader.text()).not.toMatch(/no job control|cannot set terminal/);
    input.write('exit 5\n');
    expect(await reader.end).toBe(5);
  });

  test('the end of a terminal reaches the shell as SIGHUP', async () => {
    const unit = spec('exec bash --norc --noprofile -i', 'terminal');
    const handle = await trial.start(unit);
    const reader = follow(attach(unit.id));
    await until(() => /[$#] /.test(reader.text()));
    // A signal between the prompt and the read of a line waits for the line: in any terminal.
    await sleep(300);
    const begun = Date.now();
    await trial.runtime.stop(handle, { grace_ms: 8_000, signal: 'SIGHUP' }, driverContext(withinMs));
    await reader.end;
    expect(Date.now() - begun).toBeLessThan(4_000);
    expect(processesWith(`units/${unit.id}`)).toEqual([]);
  });

  test('a reader that is late gets the last bytes, and one that is slow all of them', async () => {
    const unit = spec(`seq 1 200000; echo end`, undefined, { output_bytes: 64 << 20 });
    const handle = await trial.start(unit);
    const stop = new AbortController();
    const output = attach(unit.id).output(1 << 30, stop.signal);
    await trial.ended(handle);
    let bytes = 0;
    for (let part = await output.next(); !part.done; part = await output.next()) {
      bytes += part.value.bytes.length;
      await sleep(5);
    }
    expect(bytes).toBe(1_288_895 + 4);
    const late = attach(unit.id).output(100, stop.signal);
    const { value } = (await late.next()) as { value: { bytes: Buffer } };
    expect(value.bytes.toString()).toMatch(/^[^]{96}end\n$/);
  });
});
