/** @tier heavy @quarter 4 @covers drivers/runtime */
// Commands that enter a running unit: they have what its program has, and no more.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { driverContext } from '../../../core/driver';
import { allProcesses, argumentsOf } from '../../../core/process/processes';
import type { UnitSpec } from '../../../drivers/runtime';
import { openAttachment, type Attachment } from '../../../drivers/runtime/attachment';
import { openTrial, until, withinMs, type Trial } from '../../support/builds/runtime';
import { runtimeVariants } from '../../support/builds/runtime_variants';
import { HOSTILE_CALLS, HOSTILE_CALLS_ANSWERED } from '../../support/contract/hostile_calls';
import { fileNeeds } from '../../support/runner/programs';

jest.setTimeout(60_000);
fileNeeds('perl');

/** All by which the kernel knows the rights of a process. */
const SHOW = [
  "grep -E '^(Uid|Gid|Groups|Cap|NoNewPrivs|Seccomp)' /proc/self/status",
  'for one in /proc/self/ns/*; do readlink "$one"; done',
  'cat /proc/self/limits /proc/self/oom_score_adj /proc/self/cgroup',
  'pwd; umask; id',
  'readlink /proc/self/root || echo no root',
].join('; ');

describe.each(runtimeVariants)('a command within a unit in %s', (name, variant) => {
  const isIsolated = name === 'bubblewrap';
  let trial: Trial;
  beforeAll(async () => {
    trial = await openTrial(variant);
  });
  afterAll(() => trial?.close());

  let number = 0;
  const within = (id: string, command: string, more: Partial<UnitSpec> = {}): UnitSpec => ({
    ...trial.spec(`run_within${(number += 1)}`, command, { kind: 'task', within: id, ...more }),
  });
  const service = async (id: string, command: string, more: Partial<UnitSpec> = {}): Promise<void> => {
    await trial.start(trial.spec(id, `${command}; echo ready; exec sleep 600`, more as object));
    await trial.printed(id, 'ready');
  };
  const shown = async (id: string, command: string, more: Partial<UnitSpec> = {}): Promise<string[]> => {
    const spec = within(id, command, more);
    await trial.run(spec);
    return trial.lines(spec.id);
  };

  test('has the rights, limits and namespaces of its program', async () => {
    await service('ins_same', `{ ${SHOW}; } 2>&1`);
    const own = (await trial.lines('ins_same')).slice(0, -1);
    expect(own.length).toBeGreaterThan(30);
    if (isIsolated || process.getuid?.() === 0) expect(own).toContain('NoNewPrivs:\t1');
    expect(await shown('ins_same', `{ ${SHOW}; } 2>&1`)).toEqual(own);
    expect(await shown('ins_same', 'echo /proc/self/fd/*')).toEqual(
      [0, 1, 2, 3]
        .map((fd) => `/proc/self/fd/${fd}`)
        .join(' ')
        .split('\n'),
    );
  });

  test('has its variables, directory and files, and a terminal of its own', async () => {
    const env = { GREETING: "it's 'me'\n$HOME", LD_LIBRARY_PATH: '/nowhere', UID: '5' };
    await service('ins_files', 'echo kept > written; echo tmp > "$TMPDIR/one"', { env });
    const show = 'cat written "$TMPDIR/one"; printf %s "$GREETING"; echo new > second; env | grep -c ^UID=5';
    expect(await shown('ins_files', show, { env })).toEqual(['kept', 'tmp', "it's 'me'", '$HOME1']);
    expect(await shown('ins_files', 'cat second', { env })).toEqual(['new']);
    const size = 'stty size; [ -t 0 ] && [ -t 1 ] && echo terminal; ps -o tty= -p $$ | grep -c pts || true';
    expect((await shown('ins_files', size, { env, input: 'terminal' })).slice(0, 2)).toEqual(['24 80', 'terminal']);
  });

  test('answers the exit code, and says why it cannot be started', async () => {
    await service('ins_codes', 'true');
    expect((await trial.run(within('ins_codes', 'exit 7'))).code).toBe(7);
    expect(await trial.run(within('ins_codes', 'kill -TERM $$'))).toMatchObject({ signal: 'SIGTERM' });
    const lost = within('ins_codes', 'true', { root_directory: 'no/such' });
    expect(await trial.run(lost)).toMatchObject({ code: 126 });
    expect((await trial.lines(lost.id)).join()).toContain('does not exist');
    await expect(trial.start(within('ins_none', 'true'))).rejects.toMatchObject({
      reason: 'invalid',
      message: 'The instance is not running.',
    });
  });

  test('ends with its unit, and leaves nothing in it', async () => {
    await service('ins_end', 'true');
    const kept = '(setsid sleep 4321 >/dev/null 2>&1 &) ; (sleep 4322 &) >/dev/null 2>&1; sleep 0.3; echo done';
    expect(await shown('ins_end', kept)).toEqual(['done']);
    expect(sleepers('4321', '4322')).toEqual([]);
    const spec = within('ins_end', 'echo on; sleep 4323');
    const handle = await trial.start(spec);
    await trial.printed(spec.id, 'on');
    await trial.runtime.destroy('ins_end', driverContext(withinMs));
    await until(() => sleepers('4323').length === 0);
    if (isIsolated) expect((await trial.ended(handle)).code).not.toBe(0);
    await trial.runtime.destroy(spec.id, driverContext(withinMs));
  });

  test('ends when its shim is killed, and with the signals of a stop', async () => {
    await service('ins_kill', 'true');
    const killed = within('ins_kill', 'trap "" HUP TERM; echo on; sleep 4324');
    process.kill((await trial.start(killed)).pid, 'SIGKILL');
    await until(() => sleepers('4324').length === 0);
    const told = within('ins_kill', 'trap "echo told; exit 9" TERM; echo on; while :; do sleep 0.1; done');
    const handle = await trial.start(told);
    await trial.printed(told.id, 'on');
    await trial.runtime.stop(handle, { grace_ms: 10_000 }, driverContext(withinMs));
    expect((await trial.ended(handle)).code).toBe(9);
    expect(await trial.lines(told.id)).toEqual(['on', 'told']);
    expect(await trial.runtime.inspect((await trial.runtime.find('ins_kill'))!)).toEqual({ state: 'running' });
  });

  test('is found by another control plane, and started once', async () => {
    await service('ins_once', 'true');
    const spec = within('ins_once', 'echo on; sleep 1; echo off');
    const handle = await trial.start(spec);
    await trial.reopen();
    expect(await trial.start(spec)).toEqual(handle);
    expect((await trial.ended(handle)).code).toBe(0);
    expect(await trial.lines(spec.id)).toEqual(['on', 'off']);
  });

  test('carries bytes as they are, to the end of the input', async () => {
    await service('ins_bytes', 'true');
    const bytes = randomBytes(3 << 20);
    const spec = within('ins_bytes', 'cat', {
      input: 'pipe',
      limits: { ...trial.spec('x', '').limits, output_bytes: 8 << 20 },
    });
    await trial.start(spec);
    const attachment = openAttachment(path.join(trial.root, 'units'), spec.id) as Attachment;
    const input = (await attachment.openInput())!;
    input.end(bytes);
    await once(input, 'close');
    attachment.endInput();
    expect((await trial.ended((await trial.runtime.find(spec.id))!)).code).toBe(0);
    expect(readFileSync(path.join(trial.root, 'units', spec.id, 'out')).equals(bytes)).toBe(true);
  });

  const inSandbox = isIsolated ? test : test.skip;
  inSandbox('sees the processes of its unit alone, and reaches no system call that leads beyond it', async () => {
    await service('ins_other', 'sleep 5432 & true');
    await service('ins_view', 'sleep 5433 & true');
    const seen = (await shown('ins_view', 'cat /proc/[0-9]*/cmdline | tr "\\0" " "; echo $$')).join('\n');
    expect(seen).toContain('sleep 5433');
    expect(seen).not.toContain('sleep 5432');
    expect(seen).not.toContain('/proc/self/fd');
    if (process.arch === 'x64')
      expect(await shown('ins_view', `exec perl -e '${HOSTILE_CALLS}'`)).toEqual(HOSTILE_CALLS_ANSWERED);
  });

  // Tried without a pause, from before anything enters.
  inSandbox('cannot be touched by the programs of its unit while it enters', async () => {
    const attack = String.raw`
      $| = 1; my %seen; print "ready\n";
      while (1) {
        opendir(my $all, "/proc"); my @new = grep { /^\d+$/ && $_ != $$ && $_ > 5 } readdir $all;
        for my $pid (@new) {
          my $name = do { open(my $f, "<", "/proc/$pid/cmdline"); <$f> } // "";
          next unless $name =~ /^(platform-unit|perl)/;
          print "found\n" unless $seen{$pid}++;
          my @told;
          for my $file ("mem", "environ", "auxv", "maps") {
            push @told, "open $file" if open(my $f, "<", "/proc/$pid/$file") and sysread($f, my $x, 1);
          }
          for my $link ("exe", "root", "cwd", "ns/mnt") {
            my $to = readlink("/proc/$pid/$link");
            push @told, "link $link $to" if defined $to;
          }
          opendir(my $fds, "/proc/$pid/fd") and push @told, "fds";
          # It may have become the command meanwhile, which has no more rights than we.
          my $now = do { open(my $f, "<", "/proc/$pid/cmdline"); <$f> } // "";
          print map { "$_\n" } @told if $now eq $name;
        }
      }`;
    await trial.start(trial.spec('ins_attack', `exec perl -e '${attack}'`));
    await trial.printed('ins_attack', 'ready');
    for (let turn = 0; turn < 5; turn += 1) await shown('ins_attack', 'sleep 0.2');
    const lines = new Set(await trial.lines('ins_attack'));
    lines.delete('ready');
    expect([...lines]).toEqual(['found']);
  });

  inSandbox.each(['one user', 'a range of users'])('enters an image with %s as its program is', async (kind) => {
    const { facts } = await trial.runtime.fingerprint(driverContext(withinMs));
    if (!facts.images) return;
    const directory = path.join(trial.root, `image-${kind.length}`);
    mkdirSync(directory);
    for (const one of ['usr', 'app', 'proc', 'dev', 'tmp', 'etc']) mkdirSync(path.join(directory, one));
    for (const one of ['bin', 'lib', 'lib64']) symlinkSync(`usr/${one}`, path.join(directory, one));
    const hasRange = kind !== 'one user';
    const range = hasRange ? await trial.runtime.userRange(directory, 7) : null;
    if (hasRange && range === null) return;
    if (range) spawnSync('chown', ['-Rh', `${range.root.uid}:${range.root.gid}`, directory]);
    for (const uid of hasRange ? [0, 33] : [1000]) {
      const id = `ins_image${uid}`;
      const image = {
        ...{ command: null, env: { PATH: '/usr/bin', FROM: 'image' }, working_directory: '/tmp' },
        user: { uid, gid: uid, home: '/', ...(hasRange && { groups: [5, 6] }) },
        ...(range && { first_user_id: range.first }),
      };
      const more = { directory, image, readable: ['/usr'], ...(hasRange && { user_range: directory }) };
      await service(id, `{ ${SHOW}; } 2>&1; sleep 5434 & echo shared > /dev/shm/one`, more);
      const own = (await trial.lines(id)).slice(0, -1);
      expect(own.length).toBeGreaterThan(30);
      expect(await shown(id, `{ ${SHOW}; } 2>&1`, more)).toEqual(own);
      const seen = await shown(id, 'cat /proc/[0-9]*/cmdline | tr "\\0" " "; cat /dev/shm/one; echo $FROM', more);
      expect(seen.join()).toMatch(/sleep 5434.*shared.*image/);
      const shell = await shown(id, 'stty size', { ...more, input: 'terminal' });
      expect(shell).toEqual(['24 80']);
    }
  });
});

/** Command lines of `sleep` with one of these times. */
function sleepers(...seconds: string[]): string[] {
  const all = [...allProcesses().keys()].map((pid) => argumentsOf(pid).join(' '));
  return all.filter((line) => seconds.some((one) => line === `sleep ${one}`));
}
