// The program as an operator runs it: a process with settings, of which one sees the output and the exit code.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { configIn, withConfig } from '../config';

const ROOT = path.resolve(__dirname, '../../..');
const HOOK = path.join(ROOT, 'test/support/runner/typescript.js');
const CONFIG = path.join(__dirname, 'config.js');

export interface Program {
  pid: number;
  /** The exit code; null where a signal ended it. */
  ended: Promise<number | null>;
  out(): string;
  err(): string;
  signal(name: NodeJS.Signals): void;
  /** Resolves with the address when it is ready. @throws Error with its output when it ends before */
  ready(): Promise<string>;
}

const programs = new Set<Program>();

/**
 * Runs server/main.ts, or another entry, with these settings and nothing else of the environment.
 * @param given `node`: first process of a node of a test cluster, on which it runs
 */
export function startProgram(
  settings: Record<string, string>,
  given: { entry?: string; words?: string[]; user?: { uid?: number; gid?: number }; node?: number } = {},
): Program {
  const { entry = 'server/main.ts', words = [], user = {}, node } = given;
  const env = {
    PATH: process.env.PATH,
    PORT: '0',
    ADMIN_PORT: '0',
    INGRESS_PORT: '0',
    DNS_PORT: '0',
    SMTP_PORTS: '0',
    MX_PORT: '0',
    REGISTRY_PORT: '0',
    S3_PORT: '0',
    RETENTION_OF_DELETED_DAYS: '0',
    DESTROYING_CALLS_PER_MINUTE: '1000000',
    VOLUME_DRIVER: 'directory',
    PREFERRED_NODE: 'host',
    PREFERRED_PYTHON: 'host',
    NETWORK: 'shared',
    ...settings,
    ...withConfig({ ingressProcess: 'in_process', ...configIn(settings) }),
  };
  const command = [process.execPath, '--require', HOOK, '--require', CONFIG, path.resolve(ROOT, entry), ...words];
  const onNode =
    node === undefined
      ? []
      : ['nsenter', '--target', String(node), '--net', '--pid', '--mount', '--uts', '--', 'env', '-C', ROOT];
  const [file = '', ...args] = [...onNode, ...command];
  const child = spawn(file, args, { cwd: ROOT, env, stdio: ['ignore', 'pipe', 'pipe'], ...user });
  const said = { out: '', err: '' };
  const ended = new Promise<number | null>((resolve) => child.on('close', (code) => resolve(code)));
  const ready = new Promise<string>((resolve, reject) => {
    child.stdout.on('data', (text: Buffer) => {
      said.out += text.toString();
      const isReady = /"msg":"(ready|the (worker|ingress|name server) is ready)"/;
      const line = said.out.split('\n').find((one) => isReady.test(one));
      if (line) resolve((JSON.parse(line) as { address?: string }).address ?? '');
    });
    child.stderr.on('data', (text: Buffer) => (said.err += text.toString()));
    void ended.then((code) => reject(new Error(`ended with ${code}: ${said.err}${said.out}`)));
  });
  ready.catch(() => {}); // whoever waits for it sees it
  const program = {
    pid: child.pid as number,
    ended,
    out: () => said.out,
    err: () => said.err,
    signal: (name: NodeJS.Signals) => void child.kill(name),
    ready: () => ready,
  };
  programs.add(program);
  void ended.then(() => programs.delete(program));
  return program;
}

/** Kills what a test has left. */
export async function endPrograms(): Promise<void> {
  for (const program of programs) program.signal('SIGKILL');
  await Promise.all([...programs].map(({ ended }) => ended));
}
