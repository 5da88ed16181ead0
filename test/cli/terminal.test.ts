/** @user any */
// What people see and type: help, tables, colours, questions, Ctrl-C, completion in their shell.
import { spawn, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import path from 'node:path';
import { bundlePart } from '../support/cli/part';
import { BINARY, buildCli, follow, onTerminal, openHome, type Home } from '../support/cli/svc';
import { hasProgram } from '../support/runner/has_program';
import { needs } from '../support/runner/programs';
import { readSource } from '../support/runner/repository';
import { startService, type TestService } from '../support/service';

let service: TestService;
let home: Home;
let application: string;
beforeAll(async () => {
  buildCli();
  // Nobody does any work: a deployment stays queued.
  service = await startService();
  home = openHome(service);
  const source = { type: 'upload' };
  application = (await service.call('POST', '/v2/applications', { body: { name: 'shop', source } })).body.id;
  await service.call('POST', '/v2/applications', { body: { name: 'blog' } });
  await service.call('POST', '/v2/volumes', { body: { name: 'uploads-of-visitors', size_gb: 1 } });
});
afterAll(async () => {
  home?.remove();
  await service?.close();
});

const ESCAPE = String.fromCharCode(27);
const { test: terminalTest } = needs('script');
const shown = async (args: string[], options: Parameters<typeof onTerminal>[2] = {}): Promise<string[]> => {
  const running = onTerminal(home, args, options);
  const { code, stdout } = await running.ended;
  expect([code, stdout]).toEqual([0, expect.anything()]);
  return stdout.trimEnd().split('\r\n');
};

test('the help of all commands is that of HELP.md (npm run golden --prefix clients/cli)', async () => {
  expect(await home.output(['__help'])).toBe(readSource('clients/cli/HELP.md'));
  expect(await home.output([])).toBe(await home.output(['--help']));
  expect(readSource('clients/cli/HELP.md')).toContain(await home.output(['env', 'set', '--help']));
});

terminalTest('a list is a table with colours, and without them where NO_COLOR is set', async () => {
  const args = ['api', 'listVolumes'];
  const [head, row] = await shown(args);
  expect(head).toContain(`${ESCAPE}[1mNAME`);
  expect(row).toContain(`${ESCAPE}[33mprovisioning`);
  const [plain, colourless] = await shown(args, { env: { NO_COLOR: '1' }, columns: 120 });
  expect(plain).toMatch(/^NAME +.* ID$/);
  expect(colourless).toMatch(/^uploads-of-visitors .*vol_\w+$/);
  const dumb = await shown(args, { env: { TERM: 'dumb' } });
  expect([plain, colourless, ...dumb].join('')).not.toContain(ESCAPE);
  expect(await home.output(args)).toContain('"next_cursor": null');
});

terminalTest('at 60 columns names are whole, and ids give way to them', async () => {
  for (const args of [['api', 'listVolumes'], ['volumes'], ['apps']]) {
    const lines = await shown(args, { columns: 60, env: { NO_COLOR: '1' } });
    expect(lines.join('\n')).toMatch(/^NAME [^]*\n(?:uploads-of-visitors|shop) /);
    expect(lines.join('\n')).not.toMatch(/vol_|app_/);
    expect(lines.filter((line) => [...line].length > 60)).toEqual([]);
  }
});

terminalTest('nothing is wider than a terminal of 40 columns', async () => {
  for (const args of [
    ['api', 'listApplications'],
    ['env', 'ls', '-a', 'shop'],
    ['status', '-a', 'shop'],
  ]) {
    const lines = await shown(args, { columns: 40, env: { NO_COLOR: '1' } });
    expect(lines.filter((line) => [...line].length > 40 && !/^(url|https?)/.test(line))).toEqual([]);
  }
});

terminalTest('what others wrote does not control the terminal', async () => {
  const evil = `red ${ESCAPE}[31m ${ESCAPE}]0;title${String.fromCharCode(7)} end`;
  await service.call('PUT', `/v2/applications/${application}/env/EVIL`, { body: { value: evil } });
  const lines = await shown(['env', 'ls', '--values', '-a', 'shop'], { env: { NO_COLOR: '1' } });
  expect(lines.join('\n')).toContain('red   end');
  expect(lines.join('\n')).not.toContain(ESCAPE);
});

terminalTest('questions are asked on a terminal: which application, and the name of what is destroyed', async () => {
  const linking = onTerminal(home, ['link']);
  await linking.until(/1 {2}blog\r\n {2}2 {2}shop\r\nNumber or name: /);
  linking.child.stdin?.write('2\n');
  expect((await linking.ended).code).toBe(0);
  expect(JSON.parse(fs.readFileSync(path.join(home.folder, '.svc/link.json'), 'utf8')).application_id).toBe(
    application,
  );
  await home.output(['domains', 'add', 'shop.example.com']);
  const refused = onTerminal(home, ['domains', 'rm', 'shop.example.com']);
  await refused.until(/Enter shop\.example\.com to go on: /);
  refused.child.stdin?.write('shop\n');
  expect(await refused.ended).toMatchObject({ code: 1, stdout: expect.stringContaining('Nothing was done.') });
  const removed = onTerminal(home, ['domains', 'rm', 'shop.example.com']);
  await removed.until(/to go on: /);
  removed.child.stdin?.write('shop.example.com\n');
  expect((await removed.ended).code).toBe(0);
});

terminalTest('a secret that is typed is not shown', async () => {
  const running = onTerminal(home, ['env', 'set', 'PASSWORD', '-a', 'shop']);
  await running.until(/PASSWORD: /);
  running.child.stdin?.write('hunter2\n');
  const { code, stdout } = await running.ended;
  expect([code, stdout.includes('hunter2')]).toEqual([0, false]);
  const { body } = await service.call('GET', `/v2/applications/${application}/env?limit=100`);
  expect(body.data).toContainEqual(expect.objectContaining({ key: 'PASSWORD', value: 'hunter2' }));
});

test('Ctrl-C says what goes on, and a time-out ends with 5', async () => {
  fs.writeFileSync(path.join(home.folder, 'index.html'), 'hello');
  const running = home.start(['up', '-a', 'shop']);
  await running.until(/Deployment 1\n/);
  await new Promise((resolve) => setTimeout(resolve, 300));
  running.child.kill('SIGINT');
  expect(await running.ended).toMatchObject({
    code: 130,
    stderr: expect.stringContaining(`Deployment 1 goes on. Follow it: svc logs --deployment 1 --follow`),
  });
  const timed = await home.svc(['up', '-a', 'shop', '--timeout', '1s']);
  expect(timed).toMatchObject({
    code: 5,
    stderr: expect.stringContaining('status is still queued. The work goes on.'),
  });
});

/** What `startProgress` writes in a process whose time is made to pass: `tick(seconds)`. */
function progressOf(script: string): string {
  const output = path.join(home.directory, 'terminal.cjs');
  bundlePart('output/terminal.ts', output);
  const source = `const { mock } = require('node:test');
    mock.timers.enable({ apis: ['setInterval', 'Date'] });
    const { startProgress } = require('${output}');
    const tick = (seconds) => { for (let n = 0; n < seconds * 2; n += 1) mock.timers.tick(500); };
    ${script}`;
  const { stderr } = spawnSync(process.execPath, ['-e', source], { env: { NODE_NO_WARNINGS: '1' }, encoding: 'utf8' });
  return stderr;
}

test('work that is silent writes a line each half minute without a terminal', () => {
  const script = `const progress = startProgress('Waiting');
    tick(29); progress.update('Deployment 1: building'); tick(36); progress.stop(); tick(90);`;
  expect(progressOf(script)).toBe('… Deployment 1: building 30 s\n… Deployment 1: building 60 s\n');
});

test('work that is silent shows a line that moves on a terminal', () => {
  const script = `process.stderr.isTTY = true;
    const progress = startProgress('Deployment 1: building'); tick(1); progress.stop(); tick(5);`;
  const line = `\r${ESCAPE}[KDeployment 1: building 1 s`;
  expect(progressOf(script)).toBe(`${line}${line}\r${ESCAPE}[K`);
});

describe('completion', () => {
  const complete = async (...words: string[]): Promise<string[]> =>
    (await home.output(['__complete', ...words])).trim().split('\n');

  test('proposes commands, operations, flags and values', async () => {
    expect(await complete('re')).toEqual(['restart']);
    expect(await complete('at')).toEqual(['attach', 'attachments']);
    expect(await complete('env', 'p')).toEqual(['pull', 'push']);
    expect(await complete('api', 'getVol')).toEqual(['getVolume', 'getVolumeBackup']);
    expect(await complete('logs', '--so')).toEqual(['--source']);
    expect(await complete('logs', '--source', '')).toEqual(['app', 'router', 'system']);
  });

  const bin = (): string => {
    const directory = path.join(home.directory, 'bin');
    fs.mkdirSync(directory, { recursive: true });
    fs.writeFileSync(path.join(directory, 'svc'), `#!/bin/sh\nexec '${process.execPath}' '${BINARY}' "$@"\n`, {
      mode: 0o755,
    });
    return `${directory}:${process.env.PATH}`;
  };
  const scripts: Record<string, string> = {
    bash: `source <(svc completion bash)
      COMP_LINE='svc login --scope env:w' COMP_POINT=23; _svc
      [ "\${COMPREPLY[*]}" = write ] || exit 1
      COMP_LINE='svc logs --source r and more' COMP_POINT=19; _svc; echo "\${COMPREPLY[@]}"`,
    zsh: `autoload -U compinit && compinit -u -d "$HOME/zcompdump"; source <(svc completion zsh)
      words=(svc logs --source r) CURRENT=4; compadd() { shift; print -- $@ }; _svc`,
    fish: `svc completion fish | source; complete -C 'svc logs --source r'`,
  };
  for (const [shell, script] of Object.entries(scripts)) {
    const isThere = hasProgram(shell);
    (isThere ? test : test.skip)(`works in ${shell}${isThere ? '' : ' (not installed)'}`, async () => {
      const child = spawn(shell, ['-c', script], { env: { ...home.env, PATH: bin() } });
      expect(await follow(child).ended).toMatchObject({ code: 0, stdout: 'router\n' });
    });
  }
});
