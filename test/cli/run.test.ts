// svc run, svc ssh and svc exec against a service that really runs commands.
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import * as fs from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { BINARY, buildCli, follow, onTerminal, openHome, type Home } from '../support/cli/svc';
import { startDeployService, type DeployService, type TestApplication } from '../support/deployments/deploy';
import { nodeApp } from '../support/git/repositories';
import { needs } from '../support/runner/programs';
import { runEnded } from '../support/runs/runs';

let service: DeployService;
let application: TestApplication;
let home: Home;
beforeAll(async () => {
  buildCli();
  service = await startDeployService();
  application = await service.application(nodeApp('one'));
  expect((await application.deploy()).status).toBe('active');
  home = openHome(service);
}, 90_000);
afterAll(async () => {
  home?.remove();
  await service?.close();
}, 60_000);

const svc = (...args: string[]): ReturnType<Home['svc']> => home.svc([...args, '--app', application.id]);
const run = (args: string[], input = ''): ReturnType<Home['svc']> =>
  home.svc(['run', '--app', application.id, ...args], { input });

test('a command prints here, and its exit code is that of svc', async () => {
  expect(await run(['--', 'sh', '-c', 'echo "it\'s $0"; echo err >&2; exit 7', 'a b'])).toEqual({
    code: 7,
    stdout: "it's a b\n",
    stderr: 'err\n',
  });
  expect((await run(['kill -TERM $$'])).code).toBe(143);
});

test('one word is a line for the shell, and variables go along', async () => {
  const { code, stdout } = await run(['--env', 'A=1', '--env', 'B=x=y z', 'echo $A "$B" | cat']);
  expect([code, stdout]).toEqual([0, '1 x=y z\n']);
  expect(await run(['--env', 'wrong', 'true'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('NAME=value'),
  });
});

/** What the shell of a person puts before or after the command, and what `cat; echo done` prints of it. */
const INPUTS: [before: string, after: string, printed: string][] = [
  ['', '< /dev/null', 'done\n'],
  ['', '< empty', 'done\n'],
  ['', '<&-', 'done\n'],
  ['echo hi |', '', 'hi\ndone\n'],
  ['true |', '', 'done\n'],
  ['(sleep 1; printf late) |', '', 'latedone\n'],
  ['', '< ..', 'done\n'],
];
test.each(INPUTS)(
  '%s svc run %s ends as a command here would',
  async (before, after, printed) => {
    fs.writeFileSync(path.join(home.folder, 'empty'), '');
    const command = `${before} "$NODE" "$SVC" run --app ${application.id} 'cat; echo done' ${after}`;
    const env = { ...home.env, NODE: process.execPath, SVC: BINARY };
    const shown = await Promise.all(
      [1, 2, 3].map(
        () => follow(spawn('sh', ['-c', command], { cwd: home.folder, env, stdio: ['ignore', 'pipe', 'pipe'] })).ended,
      ),
    );
    expect(shown.map(({ code, stdout }) => [code, stdout])).toEqual(shown.map(() => [0, printed]));
  },
  60_000,
);

test('what comes together with the handshake is not lost', async () => {
  const message = (channel: number, content: string): Buffer =>
    Buffer.concat([Buffer.of(0x82, content.length + 1, channel), Buffer.from(content)]);
  const run = { id: 'run_1', application_id: application.id, tty: false };
  const server = http.createServer((_, response) => response.end(JSON.stringify(run)));
  server.on('upgrade', ({ headers }, socket) => {
    const accept = createHash('sha1').update(`${headers['sec-websocket-key']}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`);
    const head =
      'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
      `Sec-WebSocket-Protocol: platform.run.v1\r\nSec-WebSocket-Accept: ${accept.digest('base64')}\r\n\r\n`;
    const exit = message(3, '{"type":"exit","code":7}');
    // The answer to the end of the input: without it, "ready" was lost.
    socket.once('data', () => socket.end(Buffer.concat([exit, Buffer.of(0x88, 0)])));
    socket.write(Buffer.concat([Buffer.from(head), message(3, '{"type":"ready","writer":true}'), message(1, 'first')]));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const { code, stdout } = await home.svc(['run', '--app', application.id, 'cat'], {
    env: { SVC_URL: `http://127.0.0.1:${port}` },
    withinMs: 10_000,
  });
  server.close();
  expect([code, stdout]).toEqual([7, 'first']);
});

test('standard input is that of the command, to its end', async () => {
  const text = `${'0123456789\n'.repeat(200_000)}`;
  const { code, stdout } = await run(['--', 'wc', '-c'], text);
  expect([code, stdout.trim()]).toEqual([0, String(text.length)]);
});

test('long output comes whole', async () => {
  const { stdout } = await run(['--', 'seq', '1', '100000']);
  expect(stdout).toHaveLength(588_895);
});

test('--detach only starts it', async () => {
  const { code, stdout } = await run([
    '--detach',
    '--type',
    'm-1gb',
    '--timeout',
    '5m',
    '--json',
    '--',
    'echo',
    'later',
  ]);
  expect(code).toBe(0);
  const row = JSON.parse(stdout);
  expect(row).toMatchObject({ detached: true, application_type: 'm-1gb', timeout_seconds: 300, command: 'echo later' });
  expect((await runEnded(application, row.id)).status).toBe('succeeded');
});

test('what the server refuses is said', async () => {
  const { code, stderr } = await run(['--type', 'huge', 'true']);
  expect(code).toBe(1);
  expect(stderr).toContain('application_type');
});

test('a shell needs a terminal', async () => {
  const { code, stderr } = await svc('ssh');
  expect(code).toBe(2);
  expect(stderr).toContain('A shell needs a terminal.');
});

const { test: terminalTest } = needs('script');

terminalTest('svc ssh is a shell with the size of this terminal, and ends with its code (needs script)', async () => {
  const shell = onTerminal(home, ['ssh', '--app', application.id], { columns: 97 });
  await shell.until(/\$ $/);
  shell.child.stdin?.write('stty size; echo sh"own"\r');
  await shell.until(/shown/);
  expect(shell.stdout()).toMatch(/24 97/);
  shell.child.stdin?.write('sleep 600\r');
  await shell.until(/sleep 600/);
  await new Promise((resolve) => setTimeout(resolve, 500));
  shell.child.stdin?.write('\u0003');
  shell.child.stdin?.write('echo in"t"; exit 5\r');
  await shell.until(/int/);
  expect((await shell.ended).code).toBe(5);
});

terminalTest('a terminal passes every byte as it is, also without a size (needs script)', async () => {
  const shell = onTerminal(home, ['ssh', '--app', application.id], { columns: 0, rows: 0 });
  const bytes: Buffer[] = [];
  shell.child.stdout?.on('data', (part: Buffer) => bytes.push(part));
  await shell.until(/\$ $/);
  shell.child.stdin?.write('stty -opost; printf \'A\\nB\\rC\\r\\nD\\377E\'; stty opost; echo sh"own"\r');
  await shell.until(/shown/);
  expect(Buffer.concat(bytes).includes(Buffer.from('A\nB\rC\r\nD\xffEshown\r\n', 'latin1'))).toBe(true);
  shell.child.stdin?.write('exit\r');
  expect((await shell.ended).code).toBe(0);
});

terminalTest('svc run at a terminal gives the command one (needs script)', async () => {
  const running = onTerminal(home, ['run', '--app', application.id, '--', 'test -t 0 && echo has"-one"']);
  expect(await running.ended).toMatchObject({ code: 0, stdout: expect.stringContaining('has-one') });
});

const execTest = needs('perl').test;

execTest('svc exec enters the running instance, byte for byte (needs perl)', async () => {
  const exec = (args: string[], input?: string): ReturnType<Home['svc']> =>
    home.svc(['exec', '--app', application.id, ...args], { input });
  const seen = await exec(['--', 'sh', '-c', 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " "; exit 7']);
  expect([seen.code, seen.stderr]).toEqual([7, '']);
  expect(seen.stdout).toContain('node server.js');
  const size = 1_000_003;
  const input = path.join(home.folder, 'bytes');
  fs.writeFileSync(input, randomBytes(size));
  const command = `"$NODE" "$SVC" exec --app ${application.id} --instance web.1 cat < bytes > back`;
  const env = { ...home.env, NODE: process.execPath, SVC: BINARY };
  const whole = follow(spawn('sh', ['-c', command], { cwd: home.folder, env, stdio: ['ignore', 'pipe', 'pipe'] }));
  expect(await whole.ended).toMatchObject({ code: 0, stderr: '' });
  expect(fs.readFileSync(path.join(home.folder, 'back')).equals(fs.readFileSync(input))).toBe(true);
  expect(await exec(['--instance', 'web.2', 'true'])).toMatchObject({
    code: 4,
    stderr: expect.stringContaining('No instance "web.2" is running.'),
  });
  expect(await exec([])).toMatchObject({ code: 2, stderr: expect.stringContaining('A shell needs a terminal.') });
});

const bothTest = needs('perl', 'script').test;

bothTest('svc exec without a command is a shell there (needs perl, script)', async () => {
  const shell = onTerminal(home, ['exec', '--app', application.id], { columns: 0, rows: 0 });
  await shell.until(/\$ $/);
  shell.child.stdin?.write('echo "$SVC_INSTANCE_ID" sh"own"\r');
  await shell.until(/ins_\w+ shown/);
  shell.child.stdin?.write('exit 5\r');
  expect((await shell.ended).code).toBe(5);
});
