// On a cluster requests come from outside of the pod: presets listen where SVC_LISTEN_ADDRESS says.
import { spawn, type ChildProcess } from 'node:child_process';
import path from 'node:path';
import { presetDefinitions } from '../../core/catalog/catalog_definitions/presets';
import { freePort } from '../support/processes/free_port';
import { needs } from '../support/runner/programs';
import { retryCheck } from '../support/wait_for';

const ROOT = path.join(__dirname, '../..');
const COMMANDS: Record<string, string[]> = {
  'go-web': ['go', 'run', '.'],
  'node-fullstack': ['node', 'server.js'],
  'node-web': ['node', 'server.js'],
  'node-worker': ['node', 'web.js'],
  'python-web': ['python3', 'app.py'],
};
/** Of this machine, and not the one on which they listen by themselves. */
const ADDRESS = '127.0.0.2';

let server: ChildProcess | null = null;
afterEach(() => {
  // With what it started, as `go run` does.
  if (server?.pid) process.kill(-server.pid, 'SIGKILL');
  server = null;
});

test('the platform serves the files of the other preset itself', () => {
  const templates = presetDefinitions.map(({ template }) => template);
  expect(templates.filter((template) => !(template in COMMANDS))).toEqual(['static-site']);
});

for (const [template, [program = '', ...args]] of Object.entries(COMMANDS))
  needs(...(program === 'node' ? [] : [program])).test(
    `${template} listens on the address that it is given`,
    async () => {
      const port = await freePort();
      server = spawn(program, args, {
        ...{ cwd: path.join(ROOT, 'templates', template), detached: true, stdio: 'ignore' },
        env: {
          ...{ PATH: process.env.PATH, HOME: process.env.HOME, NODE_PATH: path.join(ROOT, 'node_modules') },
          ...{ PORT: String(port), SVC_LISTEN_ADDRESS: ADDRESS },
        },
      });
      await retryCheck(async () => void (await fetch(`http://${ADDRESS}:${port}/`)), 60_000);
      await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
    },
  );
