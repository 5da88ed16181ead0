// What npm starts ends when npm gets a signal: npm hands it to its shell, and dash hands nothing on.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { until } from '../support/builds/runtime';
import { ROOT } from '../support/runner/repository';

const { scripts } = JSON.parse(readFileSync(path.join(__dirname, '../../package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};
const directory = mkdtempSync(path.join(os.tmpdir(), 'platform-npm-'));
mkdirSync(path.join(directory, 'tools/scripts'), { recursive: true });
writeFileSync(path.join(directory, 'package.json'), JSON.stringify({ name: 'example', scripts }));
writeFileSync(
  path.join(directory, 'tools/scripts/start.mjs'),
  `process.on('SIGTERM', () => process.exit(0)); setInterval(() => {}, 1000); console.log('pid ' + process.pid);`,
);
afterAll(() => rmSync(directory, { recursive: true }));

test.each(['start', 'worker'])(
  'SIGTERM to `npm run %s` ends the service',
  async (script) => {
    const npm = spawn('npm', ['run', script], { cwd: directory, stdio: ['ignore', 'pipe', 'ignore'] });
    let output = '';
    npm.stdout.on('data', (text: Buffer) => (output += text.toString()));
    await until(() => /^pid \d+$/m.test(output));
    const pid = Number(/^pid (\d+)$/m.exec(output)?.[1]);
    const ended = once(npm, 'exit');
    npm.kill('SIGTERM');
    await ended;
    await until(() => !isAlive(pid), 5_000).finally(() => isAlive(pid) && process.kill(pid, 'SIGKILL'));
  },
  60_000,
);

test('a Node.js that is too old is one sentence', () => {
  const older = path.join(directory, 'older.js');
  writeFileSync(older, `Object.defineProperty(process, 'versions', { value: { node: '18.20.8' } });`);
  const program = path.join(ROOT, 'tools/scripts/start.mjs');
  const { status, stderr } = spawnSync(process.execPath, ['--require', older, program, 'server/main.js']);
  expect([status, stderr.toString()]).toEqual([
    1,
    'This is Node.js 18.20.8, and the platform needs 20.19 or newer: https://nodejs.org\n',
  ]);
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
