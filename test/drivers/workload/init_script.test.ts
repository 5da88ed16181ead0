/** @tier heavy @quarter 1 @covers drivers/workload */
// The first process of a container, in the shells that base images have: real processes and signals.
import { spawn, execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { allProcesses } from '../../../core/process/processes';
import { withInit } from '../../../drivers/release_image/init_script';
import { hasProgram } from '../../support/runner/has_program';
import { fileNeeds } from '../../support/runner/programs';
import { waitFor } from '../../support/wait_for';

fileNeeds('perl');

const directory = mkdtempSync(path.join(tmpdir(), 'init-'));
afterAll(() => rmSync(directory, { recursive: true }));

const shells = ['dash', 'bash', ...(hasProgram('busybox') ? ['busybox'] : [])].map((name) => {
  const program = execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
  if (name !== 'busybox') return [name, program] as const;
  symlinkSync(program, path.join(directory, 'ash'));
  return [name, path.join(directory, 'ash')] as const;
});

/** Ends a while after SIGTERM, as a server with open requests does. */
const SERVER = String.raw`
$| = 1;
$SIG{TERM} = sub { print "told $ARGV[0]\n"; select undef, undef, undef, 0.2; exit 7 };
print "ready\n";
sleep 1 while 1;
`;
/** Like servers with workers: the first process ends them. */
const MASTER = String.raw`
$| = 1;
my $worker = fork;
$SIG{TERM} = sub { print $worker ? "master\n" : "worker\n"; kill KILL => $worker if $worker; exit 0 };
print "ready\n" if $worker;
sleep 1 while 1;
`;
writeFileSync(path.join(directory, 'server.pl'), SERVER);
writeFileSync(path.join(directory, 'master.pl'), MASTER);
const script = (name: string, lines: string[]): void =>
  writeFileSync(path.join(directory, name), `${lines.join('\n')}\n`, { mode: 0o755 });
script('start.sh', ['#!/bin/sh', 'perl server.pl script', 'exit $?']);
script('bash.sh', ['#!/usr/bin/env bash', 'perl server.pl script', 'exit $?']);
script('trap.sh', ['#!/bin/sh', "trap 'echo trapped; exit 5' TERM", 'echo ready', 'while :; do sleep 60; done']);
script('own.sh', ['#!/bin/sh', 'perl server.pl own & p=$!', "trap 'kill $p' TERM", 'wait $p; wait $p; exit $?']);
script('package.json', ['{ "scripts": { "start": "perl server.pl npm" } }']);

interface Ended {
  code: number | null;
  signal: string | null;
  out: string;
  ms: number;
}

/** @param alone in a namespace of processes, where it is the first one */
async function stopped(
  shell: string,
  line: string,
  { signal = 'SIGTERM' as NodeJS.Signals | null, input = '', alone = false } = {},
): Promise<Ended> {
  const words = [
    ...(alone ? ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc'] : []),
    ...withInit([shell, '-c', line]),
  ];
  const child = spawn(words[0]!, words.slice(1), { cwd: directory, stdio: 'pipe' });
  let out = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (out += String(text)));
  child.stdin.on('error', () => undefined).end(input);
  const ended = new Promise<[number | null, string | null]>((resolve) => child.on('close', (...how) => resolve(how)));
  if (signal !== null) await waitFor('the program', () => out.includes('ready'), 15_000);
  const began = Date.now();
  const inside = [...allProcesses().values()].find(({ parent }) => parent === child.pid)?.pid;
  const pid = alone ? inside! : child.pid!;
  if (signal !== null) process.kill(pid, signal);
  const [code, by] = await ended;
  return { code, signal: by, out, ms: Date.now() - began };
}

describe.each(shells)('an init in %s', (name, shell) => {
  test.each([
    ['perl server.pl first; exit 9', 'told first', 9],
    ['./start.sh', 'told script', 7],
    ['./bash.sh', 'told script', 7],
    ['./trap.sh', 'trapped', 5],
    ['env A=1 perl server.pl env; echo rest', 'told env', 0],
    ['echo ready; sleep 60', 'ready', 143],
    ['perl server.pl one; perl server.pl two; exit 9', 'told one', 9],
    ['echo ready; while :; do sleep 0.02; done', 'ready', 143],
    ['npm start --silent 2>&1; true', 'told npm', 0],
  ])(
    'passes SIGTERM on through `%s`',
    async (line, printed, code) => {
      const end = await stopped(shell, line);
      expect(end).toMatchObject({ code, signal: null });
      expect(end.out).toContain(printed);
      expect(end.ms).toBeLessThan(12_000);
    },
    30_000,
  );

  test('tells a program once that its own script tells too', async () => {
    const { out, code } = await stopped(shell, './own.sh');
    expect([out.match(/told own/g)?.length, code]).toEqual([1, 7]);
  }, 30_000);

  test('leaves workers to their master', async () => {
    const { out } = await stopped(shell, 'perl master.pl; true');
    expect(out).toBe('ready\nmaster\n');
  }, 30_000);

  test('ends as the program, with its input, variables and words', async () => {
    const own = { signal: null, input: 'a line\n' } as const;
    expect(await stopped(shell, 'cat; exit 3', own)).toMatchObject({ code: 3, out: 'a line\n' });
    expect(await stopped(shell, 'no-such-program', own)).toMatchObject({ code: 127 });
    expect(await stopped(shell, 'kill -9 $$', own)).toMatchObject({ code: 137 });
    expect(await stopped(shell, `printf '%s|' "a  b" '$HOME'`, own)).toMatchObject({ code: 0, out: 'a  b|$HOME|' });
  }, 30_000);

  // busybox has no program that resets what its shell ignores in the background.
  (name === 'busybox' ? test.skip : test)(
    'lets Ctrl-C end a program',
    async () => {
      const { out } = await stopped(shell, 'echo ready; sleep 60; echo "code $?"', { signal: 'SIGINT' });
      expect(out).toBe('ready\ncode 130\n');
    },
    30_000,
  );

  (process.getuid?.() === 0 ? test : test.skip)(
    'is process 1, and reaps what others leave behind',
    async () => {
      const orphans = '(sleep 0.1 & sleep 0.2 & sleep 0.3 &); sleep 1; cat /proc/[0-9]*/stat | grep -c " Z "; ';
      const end = await stopped(shell, `${orphans} cd . && perl server.pl one`, { alone: true });
      expect(end).toMatchObject({ code: 7, out: '0\nready\ntold one\n' });
    },
    30_000,
  );
});

test('stands before shells alone', () => {
  expect(withInit(['node', 'server.js'])).toEqual(['node', 'server.js']);
  expect(withInit(['/bin/sh', '/entrypoint.sh'])).toEqual(['/bin/sh', '/entrypoint.sh']);
  expect(withInit(['/bin/bash', '-o', 'pipefail', '-c', 'a | b']).slice(3)).toEqual([
    ...['sh', '/bin/bash', '-o', 'pipefail', '-c', 'a | b'],
  ]);
});
