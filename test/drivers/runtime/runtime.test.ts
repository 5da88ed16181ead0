// Real processes: once in bubblewrap, once without, each with control groups where the host has them and without.
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { driverContext } from '../../../core/driver';
import { processesWith } from '../../support/processes/processes';
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

  test('the fingerprint says what is there', async () => {
    const { healthy, facts } = await trial.runtime.fingerprint(ctx());
    expect(healthy).toBe(true);
    expect(facts).toMatchObject({ sandbox: sandboxed ? 'bubblewrap' : 'none', users: isRoot ? 'one_each' : 'own' });
    if (variant.limits === 'poll') expect(facts.limits).toBe('poll');
  });

  test('a unit gets its variables, its files and little else', async () => {
    process.env.CONTROL_PLANE_SECRET = 'leaked';
    const env = {
      QUOTES: `it's "so" $HOME \`id\` \\ `,
      LINES_OF: 'one\ntwo',
      LD_PRELOAD: '/nowhere/evil.so',
      UID: '0',
      PORT: '24000',
    };
    const end = await trial.run(
      trial.spec(
        'ins_env',
        'cat hello.txt; printf "%s|" "$QUOTES" "$LINES_OF" "$PORT"; echo; env | cut -d= -f1 | sort | tr "\\n" " ' +
          '"; echo; cat /proc/$$/environ | tr "\\0" "\\n"',
        { env },
      ),
    );
    expect(end).toMatchObject({ code: 0, signal: null, killed: null });
    const lines = await trial.lines('ins_env');
    expect(lines.slice(0, 3)).toEqual(['hello', `it's "so" $HOME \`id\` \\ |one`, 'two|24000|']);
    const names = (lines.find((line) => line.startsWith('HOME ')) ?? '')
      .trim()
      .split(' ')
      .filter((name) => name !== 'two');
    expect(names).toEqual(
      expect.arrayContaining(['HOME', 'LANG', 'LD_PRELOAD', 'LINES_OF', 'PATH', 'PORT', 'QUOTES', 'TMPDIR']),
    );
    expect(
      names.filter((name) => !['HOME', 'LANG', 'PATH', 'TMPDIR', 'PWD', 'OLDPWD', '_', 'SHLVL'].includes(name)).sort(),
    ).toEqual(
      Object.keys(env)
        .filter((name) => names.includes(name))
        .sort(),
    );
    expect(lines.join('\n')).not.toContain('leaked');
    delete process.env.CONTROL_PLANE_SECRET;
  });

  test('files that a build left unreadable are a reason for the customer, not another try', async () => {
    const directory = path.join(trial.root, 'unreadable');
    mkdirSync(path.join(directory, 'dist/private'), { recursive: true });
    // Given to the tenant by its build.
    const build = trial.spec('dep_unreadable.build', 'chmod 000 dist/private', { kind: 'task', directory });
    expect((await trial.run(build)).code).toBe(0);
    await expect(trial.start(trial.spec('ins_unreadable', 'true', { directory }))).rejects.toMatchObject({
      reason: 'invalid',
      message:
        'The build left `dist/private` without the permission to read. ' +
        'Set the permissions in the build, for example with chmod -R u+rwX.',
    });
    await trial.runtime.destroy('ins_unreadable', ctx());
  });

  test('variables are in no argument list', async () => {
    const handle = await trial.start(
      trial.spec('ins_argv', 'echo started; sleep 60', { env: { PASSWORD: 'correct-horse-battery' } }),
    );
    await trial.printed('ins_argv', 'started');
    expect(processesWith('correct-horse-battery')).toEqual([]);
    await trial.runtime.stop(handle, { grace_ms: 5_000 }, ctx());
  });

  test.each([
    ['exit 0', { code: 0, signal: null }],
    ['exit 3', { code: 3, signal: null }],
    ['kill -9 $$', { code: null, signal: 'SIGKILL' }],
    ['kill -SEGV $$', { code: null, signal: 'SIGSEGV' }],
    ['no-such-program-here', { code: 127, signal: null }],
  ])('%s', async (command, expected) => {
    const id = `ins_exit${command.replace(/\W/g, '')}`;
    expect(await trial.run(trial.spec(id, command))).toMatchObject({ ...expected, killed: null });
    await trial.runtime.destroy(id, ctx());
  });

  test('starting twice meets the same unit, also after its end', async () => {
    const spec = trial.spec('ins_twice', 'echo once; sleep 30');
    const [one, two] = await Promise.all([trial.start(spec), trial.start(spec)]);
    expect(two).toEqual(one);
    expect(await trial.start(spec)).toEqual(one);
    await trial.reopen();
    expect(await trial.start(spec)).toEqual(one);
    expect(await trial.runtime.find('ins_twice')).toEqual(one);
    await trial.printed('ins_twice', 'once');
    await trial.runtime.stop(one, { grace_ms: 5_000 }, ctx());
    expect(await trial.start(spec)).toEqual(one);
    expect((await trial.lines('ins_twice')).filter((line) => line === 'once')).toEqual(['once']);
  });

  test('a service works in a copy, a task in the directory itself', async () => {
    await trial.run(trial.spec('ins_copy1', 'echo changed > hello.txt; ls'));
    await trial.run(trial.spec('ins_copy2', 'cat hello.txt; ls'));
    expect(await trial.lines('ins_copy2')).toEqual(['hello', 'hello.txt']);
    const directory = path.join(trial.root, 'task');
    mkdirSync(path.join(directory, 'sub'), { recursive: true });
    expect(
      await trial.run(
        trial.spec('dep_copy.build', 'echo built > result; pwd', { kind: 'task', directory, root_directory: 'sub' }),
      ),
    ).toMatchObject({ code: 0 });
    expect(readFileSync(path.join(directory, 'sub/result'), 'utf8')).toBe('built\n');
    expect((await trial.lines('dep_copy.build'))[0]).toMatch(/\/sub$/);
  });

  test('a missing root directory is told, one outside refused', async () => {
    expect(await trial.run(trial.spec('ins_cd', 'pwd', { root_directory: 'missing' }))).toMatchObject({ code: 126 });
    expect(await trial.lines('ins_cd')).toContain('The directory missing does not exist.');
    await expect(trial.start(trial.spec('ins_out', 'pwd', { root_directory: 'a/../..' }))).rejects.toMatchObject({
      reason: 'invalid',
    });
    await expect(trial.start(trial.spec('../evil', 'pwd'))).rejects.toMatchObject({ reason: 'invalid' });
  });

  (isRoot ? test : test.skip)('tenants are users without rights, and cannot read what is not theirs', async () => {
    const secret = path.join(trial.root, 'secret');
    writeFileSync(secret, 'top secret', { mode: 0o600 });
    const other = await trial.start(trial.spec('ins_other', 'echo mine > private; sleep 60', { tenant: 8 }));
    const private8 = path.join(trial.options.directory, 'ins_other/files/private');
    await until(() => existsSync(private8));
    await trial.run(
      trial.spec(
        'ins_user',
        `id -u; id -G; cat ${secret}; cat ${private8}; ls ${trial.options.directory} /root; cat /etc/shadow; ` +
          "grep -E 'CapEff|NoNewPrivs' /proc/self/status",
      ),
    );
    const text = (await trial.lines('ins_user')).join('\n');
    expect(text.split('\n').slice(0, 2)).toEqual(['700007', '700007']);
    expect(text).not.toMatch(/top secret|mine|ins_other\n|root:[x*$!]/);
    expect(text).toMatch(/CapEff:\s0+\nNoNewPrivs:\s1/);
    await trial.runtime.stop(other, { grace_ms: 2_000 }, ctx());
  });

  test('the program behind the shell gets SIGTERM, and time to finish', async () => {
    const command =
      `node -e 'process.on("SIGTERM", () => { console.log("closing"); setTimeout(() => { console.log("closed"); ` +
      `process.exit(0) }, 300) }); console.log("up"); setInterval(() => {}, 1000)'; code=$?; echo after $code; ` +
      'exit $code';
    const handle = await trial.start(trial.spec('ins_term', command));
    await trial.printed('ins_term', 'up');
    await trial.runtime.stop(handle, { grace_ms: 10_000 }, ctx());
    expect(await trial.lines('ins_term')).toEqual(['up', 'closing', 'closed', 'after 0']);
    expect(await trial.ended(handle)).toMatchObject({ code: 0, signal: null });
    await trial.runtime.stop(handle, { grace_ms: 10_000 }, ctx());
  });

  test('who ignores SIGTERM is killed after the grace time, which goes on through calls', async () => {
    const handle = await trial.start(
      trial.spec('ins_deaf', `trap 'echo deaf' TERM; (trap "" TERM; sleep 987) & echo up; while :; do sleep 0.2; done`),
    );
    await trial.printed('ins_deaf', 'up');
    const began = Date.now();
    await expect(trial.runtime.stop(handle, { grace_ms: 2_000 }, driverContext(700))).rejects.toMatchObject({
      reason: 'transient',
    });
    await trial.reopen();
    await trial.runtime.stop(handle, { grace_ms: 2_000 }, ctx());
    expect(Date.now() - began).toBeLessThan(10_000);
    expect(await trial.ended(handle)).toMatchObject({ code: null, signal: 'SIGKILL' });
    expect(processesWith('sleep 987')).toEqual([]);
  });

  test('what a unit leaves behind goes with it', async () => {
    const end = trial.run(trial.spec('ins_daemon', '(setsid sleep 986 >/dev/null 2>&1 &) ; sleep 0.3; echo bye'));
    expect(await end).toMatchObject({ code: 0 });
    await until(() => processesWith('sleep 986').length === 0, 5_000);
  });

  test('destroying twice, and what is not there', async () => {
    const marker = `sleep 985.${process.pid}${sandboxed ? 1 : 2}`;
    const spec = trial.spec('ins_destroy', `echo up; ${marker}`);
    const handle = await trial.start(spec);
    await trial.printed('ins_destroy', 'up');
    await Promise.all([trial.runtime.destroy('ins_destroy', ctx()), trial.runtime.destroy('ins_destroy', ctx())]);
    await trial.runtime.destroy('ins_destroy', ctx());
    expect(processesWith(marker)).toEqual([]);
    expect(await trial.runtime.inspect(handle)).toEqual({ state: 'gone' });
    expect(await trial.runtime.find('ins_destroy')).toBeNull();
    expect(await trial.runtime.list()).not.toContain('ins_destroy');
    expect(await trial.runtime.readLog('ins_destroy', '12.0')).toEqual({ lines: [], position: '12.0', more: false });
    await trial.runtime.stop(handle, { grace_ms: 100 }, ctx());
    const again = await trial.start(spec);
    expect(again).not.toEqual(handle);
    expect(await trial.runtime.inspect(handle)).toEqual({ state: 'gone' });
    await trial.runtime.destroy('ins_destroy', ctx());
  });

  test('a unit destroyed while its sandbox is being made leaves no process', async () => {
    const marker = `sleep 986.${process.pid}${sandboxed ? 1 : 2}`;
    for (let ms = 0; ms < 30; ms += 1) {
      await trial.start(trial.spec('ins_early', marker));
      await sleep(ms);
      await trial.runtime.destroy('ins_early', ctx());
    }
    expect(processesWith(marker)).toEqual([]);
  });

  test('usage and ports', async () => {
    const port = await trial.runtime.freePort(new Set());
    const command =
      `node -e 'require("http").createServer().listen(process.env.PORT, "127.0.0.1", () => { while ` +
      `(process.cpuUsage().user < 300000); console.log("up") })'`;
    const handle = await trial.start(trial.spec('ins_port', command, { env: { PORT: String(port) } }));
    await trial.printed('ins_port', 'up');
    expect(await trial.runtime.listening(handle)).toEqual([port]);
    const used = (await trial.runtime.usage([handle, { ...handle, unit_id: 'ins_nobody' }])).get('ins_port');
    expect(used?.cpu_seconds).toBeGreaterThan(0.2);
    expect(used?.memory_bytes).toBeGreaterThan(1 << 20);
    const all = Array.from({ length: 100 }, (_, i) => 24000 + i);
    await expect(trial.runtime.freePort(new Set(all.filter((one) => one !== port)))).rejects.toMatchObject({
      reason: 'capacity',
    });
    await trial.runtime.stop(handle, { grace_ms: 5_000 }, ctx());
    expect(await trial.runtime.freePort(new Set(all.filter((one) => one !== port)))).toBe(port);
    expect(await trial.runtime.usage([handle])).toEqual(new Map());
  });

  test('a handle whose number is another process by now harms nobody', async () => {
    const handle = await trial.start(trial.spec('ins_reuse', 'echo up; sleep 30'));
    const foreign = { ...handle, start_time: handle.start_time.replace(/^\d+/, '12') };
    expect(await trial.runtime.inspect(foreign)).toEqual({ state: 'gone' });
    await trial.runtime.stop(foreign, { grace_ms: 0 }, ctx());
    expect(await trial.runtime.inspect(handle)).toEqual({ state: 'running' });
    // After a restart of the host: the file is there, the number is ours, the start time is not.
    await trial.runtime.destroy('ins_reuse', ctx());
    const home = path.join(trial.options.directory, 'ins_reuse');
    await trial.run(trial.spec('ins_reuse', 'true'));
    writeFileSync(path.join(home, 'handle'), `${process.pid} 1 another-boot\n`);
    const found = await trial.runtime.find('ins_reuse');
    await trial.runtime.stop(found!, { grace_ms: 0 }, ctx());
    await trial.runtime.destroy('ins_reuse', ctx());
    expect(statSync('/proc/self').isDirectory()).toBe(true);
  });
});
