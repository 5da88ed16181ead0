// The processes of tools/bench/cdn: an application behind the cache, a static file server, and the host with the
// ingress and the cache. Each reports its port and resource usage.
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';

export type Role = 'app' | 'files' | 'host' | 'store' | 'visitors';

export interface Part {
  port: number;
  /** What the process has counted so far. */
  usage(): Promise<Usage>;
  send(message: object): void;
  /** The next message of the process that has the field. */
  next(field: string): Promise<Record<string, number>>;
  stop(): Promise<void>;
}

export interface Usage {
  cpuSeconds: number;
  /** Bytes now, and the most since the start. */
  rss: number;
  peak: number;
  /** Requests that came. */
  requests: number;
}

const SAMPLE_MS = 20;

export async function startPart(role: Role, options: object, flags: string[] = []): Promise<Part> {
  const child = fork(path.join(__dirname, 'main.js'), [role, JSON.stringify(options)], {
    execArgv: ['--max-semi-space-size=8', ...flags],
    env: { PATH: process.env.PATH, NODE_ENV: 'production' },
  });
  const end = (): void => void child.kill('SIGKILL');
  process.once('exit', end);
  const next = (field: string): Promise<Record<string, number>> => messageWith(child, field);
  const { port = 0 } = await next('port');
  return {
    port,
    next,
    send: (message) => void child.send(message),
    async usage() {
      const answer = next('cpuSeconds');
      child.send({ usage: true });
      return (await answer) as unknown as Usage;
    },
    async stop() {
      process.off('exit', end);
      if (child.exitCode !== null) return;
      const ended = once(child, 'exit');
      child.disconnect();
      await ended;
    },
  };
}

function messageWith(child: ChildProcess, field: string): Promise<Record<string, number>> {
  return new Promise((resolve, reject) => {
    const onMessage = (message: Record<string, number>): void => {
      if (!(field in message)) return;
      child.off('message', onMessage);
      child.off('exit', onExit);
      resolve(message);
    };
    const onExit = (): void => reject(new Error('a process of the bench has ended'));
    child.on('message', onMessage);
    child.once('exit', onExit);
  });
}

/** In such a process: ready at the port, and answering until the bench ends. */
export function serveBench(
  port: number,
  requests: () => number,
  onMessage: (message: object) => void = () => undefined,
) {
  let peak = 0;
  setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), SAMPLE_MS).unref();
  process.on('message', (message: object) => {
    if (!('usage' in message)) return onMessage(message);
    const { user, system } = process.cpuUsage();
    const rss = process.memoryUsage.rss();
    process.send?.({ cpuSeconds: (user + system) / 1e6, rss, peak: Math.max(peak, rss), requests: requests() });
  });
  process.on('disconnect', () => process.exit(0));
  process.send?.({ port });
}
