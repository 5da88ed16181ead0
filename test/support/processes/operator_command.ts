// The operator's command as a real process, on an embedded database of its own, beside a running service.
import { type ChildProcess, spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fastDirectory } from '../databases/database';
import { kill } from './processes';

const ROOT = path.resolve(__dirname, '../../..');
const HOOK = path.join(ROOT, 'test/support/runner/typescript.js');
const START_LIMIT_MS = 60_000;

interface Result {
  code: number | null;
  out: string;
  err: string;
}

export let dataDir: string;
let service: ChildProcess;
export let first: { key: string; project_id: string; base_url: string };

/** To be called where tests are declared. */
export function setUpCommand(): void {
  beforeAll(async () => {
    dataDir = mkdtempSync(path.join(fastDirectory(), 'platform-cli-'));
    chmodSync(dataDir, 0o755); // the database's user must get through
    expect(await run(['doctor', '--json'])).toMatchObject({ code: 0 }); // before there is anything
    expect(existsSync(path.join(dataDir, 'secret-key'))).toBe(false);
    service = start('server/main.ts', []);
    let said = '';
    service.stdout?.on('data', (chunk: Buffer) => (said += chunk));
    service.stderr?.on('data', (chunk: Buffer) => (said += chunk));
    for (const until = Date.now() + START_LIMIT_MS; !said.includes('"msg":"ready"');) {
      if (Date.now() > until || service.exitCode !== null) throw new Error(`the service does not start:\n${said}`);
      await sleep(50);
    }
    first = JSON.parse(readFileSync(path.join(dataDir, 'first-key.json'), 'utf8'));
    first.base_url = /"address":"(https?:[^"]+)"/.exec(said)?.[1] ?? first.base_url;
  }, START_LIMIT_MS + 10_000);

  afterAll(async () => {
    service.kill('SIGTERM');
    for (const until = Date.now() + 20_000; service.exitCode === null && Date.now() < until;) await sleep(50);
    await kill(service);
    rmSync(dataDir, { recursive: true, force: true });
  });
}

function environment(settings: Record<string, string>): NodeJS.ProcessEnv {
  const { PATH, HOME } = process.env;
  return {
    PATH,
    HOME,
    PLATFORM_DATA_DIR: dataDir,
    PORT: '0',
    ADMIN_PORT: '0',
    INGRESS_PORT: '0',
    VOLUME_DRIVER: 'directory',
    SHUTDOWN_GRACE_SECONDS: '2',
    ...settings,
  };
}

function start(file: string, args: string[], settings: Record<string, string> = {}): ChildProcess {
  return spawn(process.execPath, ['--require', HOOK, path.join(ROOT, file), ...args], {
    cwd: ROOT,
    env: environment(settings),
  });
}

export function run(
  args: string[],
  options: { input?: string; settings?: Record<string, string> } = {},
): Promise<Result> {
  const child = start('server/operator/main.ts', args, options.settings);
  const result: Result = { code: null, out: '', err: '' };
  child.stdout?.on('data', (chunk: Buffer) => (result.out += chunk));
  child.stderr?.on('data', (chunk: Buffer) => (result.err += chunk));
  child.stdin?.end(options.input ?? '');
  return new Promise((resolve) => child.on('close', (code) => resolve({ ...result, code })));
}

/* oxlint-disable-next-line typescript/no-explicit-any -- what the command prints */
export async function json(args: string[], input?: string): Promise<any> {
  const { code, out, err } = await run([...args, '--json'], { input });
  if (code !== 0) throw new Error(`${args.join(' ')}: ${code} ${err}`);
  return JSON.parse(out);
}
