/** @tier heavy @quarter 4 @covers drivers/runtime */
// What happens to units that want too much. With real processes, by control groups where the host has them, and
// without.
import { spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { driverContext } from '../../../core/driver';
import { freezeGroup } from '../../../drivers/runtime/cgroup';
import { readUnit } from '../../../drivers/runtime/run_directory';
import { firstOutput, processesWith, spawnProgram, unprivileged } from '../../support/processes/processes';
import { openTrial, until, withinMs, type Trial, type Variant } from '../../support/builds/runtime';
import { retryCheck } from '../../support/wait_for';

const hasBubblewrap = spawnSync('bwrap', ['--version']).status === 0;
const isRoot = process.getuid?.() === 0;
const ctx = () => driverContext(withinMs);
const variants: [string, Variant][] = [
  ['bubblewrap', { sandbox: 'bubblewrap' }],
  ['no sandbox', { sandbox: 'none' }],
  ['bubblewrap, no control groups', { sandbox: 'bubblewrap', limits: 'poll' }],
  ['no sandbox, no control groups', { sandbox: 'none', limits: 'poll' }],
];
const possible = variants.filter(([, { sandbox }]) => sandbox === 'none' || hasBubblewrap || process.env.CI);
const eater = `node -e 'const all = []; setInterval(() => all.push(Buffer.alloc(4 << 20, 1)), 10)'`;

jest.setTimeout(60_000);

describe.each(possible)('limits in %s', (_name, variant) => {
  let trial: Trial;
  beforeAll(async () => void (trial = await openTrial(variant)));
  afterAll(async () => {
    await trial.close();
    expect(trial.errors).toEqual([]);
  });

  function task(name: string): { kind: 'task'; directory: string } {
    const directory = path.join(trial.root, name);
    mkdirSync(directory, { recursive: true });
    return { kind: 'task', directory };
  }

  test('memory', async () => {
    const end = await trial.run(trial.spec('ins_memory', `${eater}; exit $?`, { limits: { memory_mb: 100 } }));
    expect(end.killed).toBe('memory');
  });

  test('a unit that stays within its memory is not said to be killed', async () => {
    expect(await trial.run(trial.spec('ins_modest', 'exit 1', { limits: { memory_mb: 100 } }))).toMatchObject({
      code: 1,
      killed: null,
    });
  });

  test('memory that processes share counts once, and that of their own is added', async () => {
    const limits = { memory_mb: 200 };
    const five = 'for (1 .. 4) { $child = fork or last }';
    const shared = `perl -e 'my $n = 60 << 20; my $text = "x" x $n; ${five} sleep 4'`;
    expect(await trial.run(trial.spec('ins_forks', shared, { limits }))).toMatchObject({ code: 0, killed: null });
    // A control group ends one of them.
    const end = '$child ? (wait, exit($? ? 137 : 0)) : sleep 20;';
    const own = `perl -e '${five} my $n = 60 << 20; my $text = "x" x $n; ${end}'; exit $?`;
    expect((await trial.run(trial.spec('ins_many', own, { limits }))).killed).toBe('memory');
  });

  test('time', async () => {
    const began = Date.now();
    const end = await trial.run(
      trial.spec('dep_time.build', 'trap "" TERM; sleep 984', { ...task('time'), limits: { time_ms: 700 } }),
    );
    expect(end).toMatchObject({ signal: 'SIGKILL', killed: 'time' });
    expect(Date.now() - began).toBeLessThan(20_000);
    expect(processesWith('sleep 984')).toEqual([]);
  });

  test('output of a task', async () => {
    const end = await trial.run(
      trial.spec('dep_output.build', 'yes', { ...task('output'), limits: { output_bytes: 100_000 } }),
    );
    expect(end.killed).toBe('output');
  });

  test('of the output of a service the oldest lines go', async () => {
    const handle = await trial.start(
      trial.spec(
        'ins_chatty',
        'i=0; while [ $i -lt 60000 ]; do i=$((i+1)); echo "this is line number $i"; done; echo last; sleep 60',
        { limits: { output_bytes: 200_000 } },
      ),
    );
    const first = await trial.runtime.readLog('ins_chatty', null);
    expect(first.lines[0]?.text ?? 'this is line number 1').toBe('this is line number 1');
    await trial.printed('ins_chatty', 'last', 20_000);
    await until(async () => (await trial.lines('ins_chatty')).join('\n').length < 200_000, 10_000);
    const lines = await trial.lines('ins_chatty');
    expect(lines.at(-1)).toBe('last');
    expect(lines.length).toBeGreaterThan(1_000);
    expect(lines.slice(0, -1).every((line) => /^this is line number \d+$/.test(line))).toBe(true);
    // Who was in the middle goes on where the log begins now.
    expect((await trial.runtime.readLog('ins_chatty', first.position)).lines[0]).toEqual({
      stream: 'stdout',
      text: lines[0],
    });
    await trial.runtime.stop(handle, { grace_ms: 1_000 }, ctx());
  });

  test('disk', async () => {
    const spec = trial.spec(
      'dep_disk.build',
      'i=0; while :; do i=$((i+1)); head -c 4000000 /dev/zero > file$i; sleep 0.05; [ $i -gt 60 ] && sleep 60; done',
      { ...task('disk'), limits: { disk_mb: 40 } },
    );
    expect((await trial.run(spec)).killed).toBe('disk');
  });

  test('disk, by a file that is gone again soon', async () => {
    const spec = trial.spec('dep_burst.build', 'head -c 300000000 /dev/zero > large; sleep 2; rm large; exit 0', {
      ...task('burst'),
      limits: { disk_mb: 40 },
    });
    expect((await trial.run(spec)).killed).toBe('disk');
  });

  test('disk, by files without content', async () => {
    const spec = trial.spec(
      'dep_files.build',
      'i=0; while i=$((i+1)); [ $i -lt 100000 ]; do : > file$i; done; sleep 60',
      { ...task('files'), limits: { disk_mb: 16 } },
    );
    expect((await trial.run(spec)).killed).toBe('disk');
    expect(readdirSync(spec.directory).length).toBeLessThan(90_000);
  });

  test('a unit that was left frozen goes on', async () => {
    const handle = await trial.start(trial.spec('dep_frozen.build', 'sleep 1; exit 3', { ...task('frozen') }));
    const unit = await readUnit(path.join(trial.options.directory, 'dep_frozen.build'));
    if (unit?.group) await freezeGroup(unit.group);
    await trial.reopen();
    expect(await trial.ended(handle)).toMatchObject({ code: 3, killed: null });
  });

  test('a fork bomb is bounded, and gone', async () => {
    const marker = `bomb_${process.pid}_${variant.sandbox}_${variant.limits ?? 'auto'}`;
    const spec = trial.spec('dep_bomb.build', `bomb() { sh -c ': ${marker}; sleep 30' & bomb & bomb & wait; }; bomb`, {
      ...task('bomb'),
      limits: { processes: 30, time_ms: 3_000 },
    });
    const handle = await trial.start(spec);
    let most = 0;
    for (const end = Date.now() + 2_000; Date.now() < end; await sleep(50))
      most = Math.max(most, processesWith(marker).length);
    const { process_limit } = (await trial.runtime.fingerprint(ctx())).facts;
    expect(most).toBeLessThan({ unit: 30 + 4, user: 8 * 30, monitor: Infinity }[String(process_limit)] ?? 0);
    await trial.ended(handle);
    await trial.runtime.destroy('dep_bomb.build', ctx());
    expect(processesWith(marker)).toEqual([]);
  });

  test('tasks give way to others', async () => {
    await trial.run(trial.spec('dep_nice.build', 'nice', { ...task('nice') }));
    expect(await trial.lines('dep_nice.build')).toEqual([String(getPriority() + 10)]);
  });

  (variant.limits === 'poll' ? test.skip : test)('cores', async () => {
    const { limits } = (await trial.runtime.fingerprint(ctx())).facts;
    if (limits === 'poll') return;
    const handle = await trial.start(trial.spec('ins_cores', 'while :; do :; done', { limits: { cpus: 0.25 } }));
    await sleep(2_000);
    const used = (await trial.runtime.usage([handle])).get('ins_cores');
    expect(used?.cpu_seconds).toBeGreaterThan(0.2);
    expect(used?.cpu_seconds).toBeLessThan(0.9);
    await trial.runtime.stop(handle, { grace_ms: 1_000 }, ctx());
  });

  // Without control groups the memory of each has to be looked up, which costs more.
  (variant.limits === 'poll' ? test.skip : test)('fifty idle units cost next to nothing', async () => {
    // As an ordinary user, there may be none.
    const { limits, disk_limit } = (await trial.runtime.fingerprint(ctx())).facts;
    const boundMs = limits === 'poll' ? 40 : 8;
    // Trees that are measured are measured far more often here.
    const limited = { limits: { disk_mb: disk_limit === 'hard' ? 64 : null } };
    const handles = await Promise.all(
      Array.from({ length: 50 }, (_, i) => trial.start(trial.spec(`ins_idle${i}`, 'exec sleep 300', limited))),
    );
    expect(new Set(handles.map(({ pid }) => pid)).size).toBe(50);
    await sleep(1_500);
    const before = process.cpuUsage();
    await sleep(4_000);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1000 / 4).toBeLessThan(boundMs);
    // The kernel may hold a disk a moment longer than the processes on it.
    for (const { unit_id } of handles) await retryCheck(() => trial.runtime.destroy(unit_id, ctx()));
  });
});

(isRoot ? describe : describe.skip)('a control plane without rights', () => {
  test.each(hasBubblewrap || process.env.CI ? ['bubblewrap', 'none'] : ['none'])(
    'runs units as its own user: %s',
    async (sandbox) => {
      const trial = await openTrial({ sandbox: 'none' });
      const { uid, gid } = unprivileged();
      const directory = path.join(trial.root, 'unprivileged');
      mkdirSync(directory);
      chownSync(directory, uid!, gid!);
      const spec = trial.spec('ins_own', 'id -u; cat hello.txt; echo done', {});
      const program = `
      const [options, spec] = JSON.parse(process.argv[1]);
      const ctx = { deadline: Infinity, signal: AbortSignal.timeout(20000) };
      (async () => {
        const runtime = await require('./drivers/runtime/local').openLocalRuntime(options);
        const { facts } = await runtime.fingerprint(ctx);
        const handle = await runtime.start(spec, ctx);
        while ((await runtime.inspect(handle)).state === 'running') await new Promise((go) => setTimeout(go, 20));
        const state = await runtime.inspect(handle);
        const { lines } = await runtime.readLog(spec.id, null);
        await runtime.destroy(spec.id, ctx);
        const left = await runtime.list();
        console.log(JSON.stringify({ facts, state, lines: lines.map((line) => line.text), left }));
        process.exit(0);
      })();`;
      const child = spawnProgram(program, [JSON.stringify([{ ...trial.options, sandbox, directory }, spec])], {
        uid,
        gid,
      });
      const said = JSON.parse(await firstOutput(child)) as Record<string, unknown>;
      expect(said).toMatchObject({
        facts: { sandbox, users: 'own', limits: 'poll' },
        state: { state: 'exited', code: 0 },
        lines: [String(uid), 'hello', 'done'],
        left: [],
      });
      await trial.close();
    },
  );
});

test('nothing of the tests stays in the control groups', () => {
  const groups = readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .filter((line) => /^cgroup/.test(line))
    .map((line) => line.split(' ')[1]);
  expect(
    groups.flatMap((group) =>
      spawnSync('find', [group!, '-path', '*/platform/*_bomb*', '-type', 'd'], { encoding: 'utf8' })
        .stdout.split('\n')
        .filter(Boolean),
    ),
  ).toEqual([]);
});
