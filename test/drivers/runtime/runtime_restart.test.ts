// Units while the control plane is killed, and the directories that are mounted into them.
import { existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { driverContext } from '../../../core/driver';
import { firstOutput, kill, processesWith, spawnProgram } from '../../support/processes/processes';
import { runtimeVariants } from '../../support/builds/runtime_variants';
import { openTrial, until, withinMs, type Trial } from '../../support/builds/runtime';

const isRoot = process.getuid?.() === 0;
const ctx = () => driverContext(withinMs);

jest.setTimeout(60_000);

describe.each(runtimeVariants)('units in %s', (_name, variant) => {
  let trial: Trial;
  const sandboxed = variant.sandbox === 'bubblewrap';
  beforeAll(async () => void (trial = await openTrial(variant)));
  afterAll(async () => {
    await trial.close();
    expect(trial.errors).toEqual([]);
  });

  test('a control plane that is killed is no loss: the next one adopts', async () => {
    const spec = trial.spec(
      'ins_adopt',
      'echo up; read x < go 2>/dev/null; while [ ! -f go ]; do sleep 0.1; done; exit 5',
    );
    const program = `
      const [options, spec] = JSON.parse(process.argv[1]);
      const ctx = { deadline: Infinity, signal: AbortSignal.timeout(20000) };
      require('./drivers/runtime/local').openLocalRuntime(options)
        .then((runtime) => runtime.start(spec, ctx)).then((handle) => console.log(JSON.stringify(handle)));
      setInterval(() => {}, 1000);`;
    const child = spawnProgram(program, [JSON.stringify([trial.options, spec])]);
    const handle = JSON.parse(await firstOutput(child));
    await kill(child);
    await trial.reopen();
    expect(await trial.runtime.find('ins_adopt')).toEqual(handle);
    expect(await trial.runtime.inspect(handle)).toEqual({ state: 'running' });
    expect(await trial.start(spec)).toEqual(handle);
    const told = new Promise<string>((resolve) => trial.runtime.watch((id) => id === 'ins_adopt' && resolve(id)));
    writeFileSync(path.join(trial.options.directory, 'ins_adopt/files/go'), 'go\n');
    expect(await told).toBe('ins_adopt');
    expect(await trial.ended(handle)).toMatchObject({ code: 5 });
  });

  test('a control plane that is killed anywhere in a start leaves one unit, not two', async () => {
    const program = `
      const [options, spec] = JSON.parse(process.argv[1]);
      const ctx = { deadline: Infinity, signal: AbortSignal.timeout(20000) };
      require('./drivers/runtime/local').openLocalRuntime(options).then((runtime) => {
        console.log('ready');
        return runtime.start(spec, ctx);
      });
      setInterval(() => {}, 1000);`;
    for (const ms of [0, 4, 8, 12, 20, 35]) {
      const id = `ins_killed${ms}`;
      const spec = trial.spec(id, `: marker-${id}; echo up; sleep 300; :`);
      const child = spawnProgram(program, [JSON.stringify([trial.options, spec])]);
      await firstOutput(child);
      await sleep(ms);
      await kill(child);
      const handle = await trial.start(spec);
      await trial.printed(id, 'up');
      expect(await trial.runtime.inspect(handle)).toEqual({ state: 'running' });
      expect(await trial.lines(id)).toEqual(['up']);
      // For an instant, before it becomes sleep, the shell's child looks like a second shell.
      await until(
        () => processesWith(`marker-${id}`).filter(({ args }) => args.startsWith('/bin/sh -c :')).length === 1,
      );
      await trial.runtime.destroy(id, ctx());
      expect(processesWith(`marker-${id}`)).toEqual([]);
    }
    expect((await trial.runtime.list()).filter((id) => id.startsWith('ins_killed'))).toEqual([]);
  });

  test('a draft of a start that was killed is cleared away', async () => {
    const draft = path.join(trial.options.directory, '.new-ins_draft-0123456789ab');
    mkdirSync(path.join(draft, 'files'), { recursive: true });
    expect(await trial.runtime.list()).toContain('ins_draft');
    expect(await trial.run(trial.spec('ins_draft', 'exit 4'))).toMatchObject({ code: 4 });
    expect(existsSync(draft)).toBe(false);
  });

  test('volumes and caches are seen where they belong, and can be written', async () => {
    const volume = path.join(trial.root, 'volume');
    const cache = path.join(trial.root, 'cache');
    for (const directory of [volume, cache]) mkdirSync(directory, { recursive: true, mode: 0o700 });
    const same = trial.spec('ins_cache', `echo kept > ${cache}/file`, { mounts: [{ source: cache, target: cache }] });
    expect(await trial.run(same)).toMatchObject({ code: 0 });
    expect(readFileSync(path.join(cache, 'file'), 'utf8')).toBe('kept\n');
    const target = path.join(trial.root, 'mounted/here');
    const elsewhere = trial.spec('ins_volume', `echo data > ${target}/file; cat ${target}/file`, {
      mounts: [{ source: volume, target }],
    });
    if (!sandboxed && !isRoot) return expect(trial.start(elsewhere)).rejects.toMatchObject({ reason: 'unsupported' });
    expect(await trial.run(elsewhere)).toMatchObject({ code: 0 });
    expect(readFileSync(path.join(volume, 'file'), 'utf8')).toBe('data\n');
    expect(existsSync(path.join(target, 'file'))).toBe(false);
  });

  test('volumes do not cover the system, nor follow links', async () => {
    const source = path.join(trial.root, 'volume2');
    mkdirSync(source, { recursive: true });
    for (const target of ['/', '/usr', '/etc/ssl', '/app', '/data/../etc', 'relative']) {
      await expect(
        trial.start(trial.spec('ins_cover', 'true', { mounts: [{ source, target }] })),
      ).rejects.toMatchObject({ reason: 'invalid' });
    }
    const directory = path.join(trial.root, 'linked');
    mkdirSync(directory, { recursive: true });
    if (!existsSync(path.join(directory, 'data'))) symlinkSync('/nowhere', path.join(directory, 'data'));
    await expect(
      trial.start(trial.spec('ins_link', 'true', { directory, mounts: [{ source, target: '/app/data' }] })),
    ).rejects.toMatchObject({ reason: 'invalid' });
  });
});
