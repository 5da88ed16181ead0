/** @tier heavy @quarter 4 @covers drivers/runtime */
// What a program takes for granted of the machine that it runs on: its output, its signals, its name, its limits.
import { chmodSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { driverContext } from '../../../core/driver';
import { allProcesses, argumentsOf } from '../../../core/process/processes';
import { openTrial, until, withinMs, type Trial } from '../../support/builds/runtime';
import { runtimeVariants } from '../../support/builds/runtime_variants';
import { fileNeeds } from '../../support/runner/programs';
import { hasProgram } from '../../support/runner/has_program';

jest.setTimeout(60_000);

const SERVER = String.raw`
$| = 1;
$SIG{TERM} = sub { print "told\n"; select undef, undef, undef, 0.2; exit 7 };
print "ready\n";
sleep 1 while 1;
`;

fileNeeds('perl');

describe.each(runtimeVariants)('a program in %s', (_name, variant) => {
  let trial: Trial;
  const script = (name: string, lines: string[]): void => {
    const file = path.join(trial.root, 'src', name);
    writeFileSync(file, `${lines.join('\n')}\n`);
    chmodSync(file, 0o755);
  };
  beforeAll(async () => {
    trial = await openTrial(variant);
    script('server.pl', [SERVER]);
    script('start.sh', ['#!/bin/sh', 'perl server.pl', 'exit $?']);
    script('bash.sh', ['#!/usr/bin/env bash', 'perl server.pl', 'exit $?']);
    script('trap.sh', ['#!/bin/sh', "trap 'echo told; exit 7' TERM", 'echo ready', 'while :; do sleep 60; done']);
    script('own.sh', ['#!/bin/sh', 'perl server.pl & p=$!', "trap 'kill $p' TERM", 'wait $p; wait $p; exit $?']);
  });
  afterAll(() => trial.close());

  test('keeps what it printed when it opens its output anew', async () => {
    const lines = ['echo one', 'echo two > /dev/stdout', 'echo three > /proc/self/fd/1', 'echo four > /dev/fd/1'];
    const errors = ['echo five >&2', 'echo six > /dev/stderr', 'echo seven >&2'];
    const end = await trial.run(trial.spec('ins_anew', `${[...lines, ...errors].join('; ')}; seq 3 | tee /dev/stdout`));
    expect(end.code).toBe(0);
    const printed = await trial.lines('ins_anew');
    expect(printed.sort()).toEqual([
      ...['1', '1', '2', '2', '3', '3'],
      ...['five', 'four', 'one'],
      ...['seven', 'six', 'three', 'two'],
    ]);
  });

  test('has printed all when its end is known', async () => {
    for (const id of ['ins_last1', 'ins_last2', 'ins_last3']) {
      await trial.run(trial.spec(id, 'seq 1 20000; kill -9 $$'));
      expect((await trial.lines(id)).length).toBe(20_000);
    }
  });

  test('prints on while the control plane is away, and when what copies its output was killed', async () => {
    const handle = await trial.start(
      trial.spec('ins_away', 'i=0; while :; do i=$((i + 1)); echo $i; sleep 0.02; done'),
    );
    await trial.printed('ins_away', '3');
    await trial.reopen();
    const count = (await trial.lines('ins_away')).length;
    await until(async () => (await trial.lines('ins_away')).length > count + 10);
    const lines = await trial.lines('ins_away');
    expect(lines).toEqual(lines.map((_, i) => String(i + 1)));
    const copying = [...allProcesses().values()].filter(
      ({ pid, parent }) => pid !== handle.pid && parent === handle.pid,
    );
    const readers = copying.filter(({ pid }) => argumentsOf(pid).includes('platform-output')).map(({ pid }) => pid);
    expect(readers).toHaveLength(2);
    const cats = [...allProcesses().values()].filter(({ parent }) => readers.includes(parent));
    cats.forEach(({ pid }) => process.kill(pid, 'SIGKILL'));
    const before = (await trial.lines('ins_away')).length;
    await until(async () => (await trial.lines('ins_away')).length > before + 10);
    await trial.runtime.stop(handle, { grace_ms: 5_000 }, driverContext(withinMs));
    expect((await trial.ended(handle)).signal).toBe('SIGTERM');
  });

  test.each([
    'cd . && perl server.pl',
    './start.sh',
    './bash.sh',
    './trap.sh',
    './own.sh',
    'bash -c "perl server.pl; exit 7"',
  ])('gets SIGTERM behind `%s`', async (command) => {
    const id = `ins_${command.replaceAll(/\W+/g, '')}`;
    const handle = await trial.start(trial.spec(id, command));
    await trial.printed(id, 'ready');
    await trial.runtime.stop(handle, { grace_ms: 12_000 }, driverContext(withinMs));
    expect(await trial.ended(handle)).toMatchObject({ code: 7, killed: null });
    expect((await trial.lines(id)).slice(0, 2)).toEqual(['ready', 'told']);
  });

  test('finds its host name', async () => {
    await trial.run(trial.spec('ins_host', 'getent hosts "$(hostname)" >/dev/null && hostname -f >/dev/null; echo $?'));
    expect(await trial.lines('ins_host')).toEqual(['0']);
    if (variant.sandbox === 'bubblewrap') {
      await trial.run(trial.spec('ins_names', 'hostname; getent hosts app'));
      expect((await trial.lines('ins_names')).map((line) => line.split(/\s+/))).toEqual([
        ['app'],
        ['127.0.0.1', 'app'],
      ]);
    }
  });
});

const hasSandbox = runtimeVariants.some(([, { sandbox }]) => sandbox === 'bubblewrap');

(hasSandbox ? describe : describe.skip)('the limits of a unit', () => {
  let trial: Trial;
  let isLimited = false;
  beforeAll(async () => {
    trial = await openTrial({ sandbox: 'bubblewrap' });
    const { limits } = (await trial.runtime.fingerprint(driverContext(withinMs))).facts;
    isLimited = String(limits).startsWith('cgroup');
  });
  afterAll(() => trial.close());
  const linesOf = async (id: string, command: string): Promise<string[]> => {
    await trial.run(trial.spec(id, command, { limits: { memory_mb: 512, cpus: 1, processes: 100 } }));
    return trial.lines(id);
  };

  test('are seen by Node.js and by programs that read them, and nothing of other units is', async () => {
    if (!isLimited) return;
    const other = await trial.start(trial.spec('ins_neighbour', 'sleep 60'));
    const heap = 'v8.getHeapStatistics().heap_size_limit / 2 ** 20 < 512';
    const files = '/sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes';
    const lines = await linesOf(
      'ins_limits',
      `node -p '${heap}'; cat ${files} 2>/dev/null; ` +
        'touch /sys/fs/cgroup/x /sys/fs/cgroup/*/x 2>/dev/null && echo written; ' +
        'cut -d: -f3 /proc/self/cgroup | sort -u; ' +
        'grep -r neighbour /sys/fs/cgroup /proc/self/mountinfo /proc/self/cgroup 2>/dev/null; ' +
        'find /sys -type d | sort',
    );
    expect(lines.slice(0, 3)).toEqual(['true', String(512 * 2 ** 20), '/']);
    // A group has no group below it, and beside it there is none.
    expect(lines.slice(3)).toEqual(lines.slice(3).filter((line) => /^\/sys(\/fs(\/cgroup(\/[a-z]+)?)?)?$/.test(line)));
    await trial.runtime.stop(other, { grace_ms: 1_000 }, driverContext(withinMs));
  });

  (hasProgram('java') ? test : test.skip)('are seen by the JVM, with its processors', async () => {
    if (!isLimited) return;
    const source =
      'class A { public static void main(String[] a) throws Exception { System.out.println(' +
      'Runtime.getRuntime().availableProcessors() + " " + (Runtime.getRuntime().maxMemory() >> 20) + " " + ' +
      'java.net.InetAddress.getLocalHost()); } }';
    const lines = await linesOf('ins_java', `echo '${source}' > A.java; java A.java`);
    expect(lines).toEqual([expect.stringMatching(/^1 1[0-3]\d app\/127\.0\.0\.1$/)]);
  });
});
