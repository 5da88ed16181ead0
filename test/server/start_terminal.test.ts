// The first start as somebody at a terminal sees it: `script` (util-linux) is the terminal.
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { directory, setUpStarts, until } from '../support/processes/start_cases';

setUpStarts();

const ROOT = path.resolve(__dirname, '../..');
const hasTerminal = spawnSync('script', ['--version']).status === 0;
const atTerminal = hasTerminal || process.env.CI ? test : test.skip;

interface Session {
  text(): string;
  pid: number;
  ended: Promise<unknown>;
}

function startAtTerminal(settings: Record<string, string>): Session {
  const program = [
    '--require',
    path.join(ROOT, 'test/support/runner/typescript.js'),
    path.join(ROOT, 'server/main.ts'),
  ];
  const command = [process.execPath, ...program].map((word) => `'${word}'`).join(' ');
  const free = { PORT: '0', ADMIN_PORT: '0', INGRESS_PORT: '0', DNS_PORT: '0', S3_PORT: '0', REGISTRY_PORT: '0' };
  const child = spawn('script', ['-qefc', `exec ${command}`, '/dev/null'], {
    cwd: ROOT,
    env: {
      PATH: process.env.PATH,
      ...free,
      SMTP_PORTS: '0',
      MX_PORT: '0',
      VOLUME_DRIVER: 'directory',
      NETWORK: 'shared',
      ...settings,
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => (text += chunk.toString()));
  const ended = new Promise((resolve) => child.on('close', resolve));
  return { text: () => text, pid: child.pid as number, ended };
}

atTerminal(
  `it says what it does, shows the key once, and logs no line for each request${hasTerminal ? '' : ' (needs script)'}`,
  async () => {
    const dir = directory('terminal');
    const session = startAtTerminal({ PLATFORM_DATA_DIR: dir });
    try {
      const isReady = (): boolean => session.text().includes('/deployments ');
      await until(isReady).then(() => until(isReady));
      const { key, base_url } = JSON.parse(readFileSync(path.join(dir, 'first-key.json'), 'utf8'));
      const steps = ['starting the embedded database', 'preparing the API', 'Welcome.', '/deployments '];
      const places = steps.map((step) => session.text().indexOf(step));
      expect(places).toEqual([...places].sort((a, b) => a - b));
      expect(places).not.toContain(-1);
      // Beside its line, the example that is ready to paste.
      expect(session.text().split(key)).toHaveLength(3);
      expect((await fetch(`${base_url}/v2/me`, { headers: { Authorization: `Bearer ${key}` } })).status).toBe(200);
      const { status } = await fetch(`${base_url}/v2/nowhere`);
      expect(status).toBe(404);
      expect(session.text()).not.toContain('"msg":"request"');
    } finally {
      process.kill(session.pid, 'SIGTERM');
      await session.ended;
    }
  },
  60_000,
);
