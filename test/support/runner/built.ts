// Builds a source with the script of the builder, and runs what comes of it: what a deployment does, without the
// runtime around it.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import type { BuildPlan, BuildSettings } from '../../../drivers/builder';
import { openBuilder } from '../../../drivers/builder/buildpack';
import { driverContext } from '../../../core/driver';
import { hostFacts } from '../../../drivers/host';
import { openToolchains } from '../../../drivers/toolchain/store';
import { freePort } from '../processes/free_port';

export interface Built {
  plan: BuildPlan;
  directory: string;
  /** Relative to it. */
  root: string;
  code: number;
  output: string;
}

export interface Running {
  url: string;
  child: ChildProcess;
  output(): string;
  stop(): Promise<number | null>;
}

const settings: BuildSettings = {
  builder: 'buildpack',
  root_directory: '.',
  dockerfile_path: 'Dockerfile',
  build_command: null,
};

/** `cache` is shared by all builds of the workshop. `close` ends what still runs. */
export function openWorkshop() {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'built-'));
  const cache = path.join(folder, 'cache');
  const running: Running[] = [];
  const toolchains = openToolchains(path.join(folder, 'toolchains'));
  mkdirSync(cache);
  shareGoCache(cache);
  return {
    /** A directory for the files of a source. */
    source(files: Record<string, string | object>): string {
      const directory = mkdtempSync(path.join(folder, 'source-'));
      for (const [name, content] of Object.entries(files)) {
        mkdirSync(path.dirname(path.join(directory, name)), { recursive: true });
        writeFileSync(path.join(directory, name), typeof content === 'string' ? content : JSON.stringify(content));
      }
      return directory;
    },
    /** @param more directories of programs that the host has before those of PATH */
    async build(directory: string, changed: Partial<BuildSettings> = {}, more: string[] = []): Promise<Built> {
      const PATH = [...more, process.env.PATH].join(path.delimiter);
      const builder = openBuilder(await toolchains, 'host', 'host');
      const ctx = driverContext(60_000);
      const plan = await builder.detect(
        directory,
        { ...settings, ...changed },
        await hostFacts(more.length ? { searchPath: PATH } : {}),
        ctx,
      );
      // The cache of Go is shared below.
      await builder.ensureTools({ ...plan, go: undefined }, ctx);
      const { command, env: own, defaults } = await builder.task(plan, { directory, cache }, ctx);
      const env = { PATH, ...defaults, ...plan.env, ...own };
      const { status, stdout, stderr } = spawnSync('/bin/sh', ['-c', command], {
        cwd: path.join(directory, changed.root_directory ?? '.'),
        env,
        encoding: 'utf8',
        timeout: 120_000,
      });
      const root = changed.root_directory ?? '.';
      return { plan, directory, root, code: status ?? -1, output: stdout + stderr };
    },
    /** Like an instance: from a copy of the files elsewhere, on a port of its own; ready when it answers anything. */
    async start({ plan, directory, root }: Built, env: Record<string, string> = {}, type = 'web'): Promise<Running> {
      const copy = mkdtempSync(path.join(folder, 'instance-'));
      cpSync(directory, copy, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
      const one = await startOne(path.join(copy, root), plan, type, env);
      running.push(one);
      return one;
    },
    async close(): Promise<void> {
      await Promise.all(running.map((one) => one.stop()));
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The libraries of Go are compiled once for all test files: half a minute of processor time for each otherwise. */
function shareGoCache(cache: string): void {
  const shared = path.resolve(__dirname, '../../../.cache/go-build');
  try {
    mkdirSync(shared, { recursive: true });
  } catch {
    return; // A checkout of another user.
  }
  symlinkSync(shared, path.join(cache, 'go-build'));
}

async function startOne(
  directory: string,
  plan: BuildPlan,
  type: string,
  env: Record<string, string>,
): Promise<Running> {
  const port = await freePort();
  const script =
    '[ ! -r .platform/profile ] || . ./.platform/profile\n' +
    `exec /bin/sh -c '${plan.processes[type]!.replaceAll("'", String.raw`'\''`)}'`;
  const child = spawn('/bin/sh', ['-c', script], {
    cwd: directory,
    detached: true,
    env: { PATH: process.env.PATH, ...plan.env, PORT: String(port), ...env },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
  const url = `http://127.0.0.1:${port}`;
  const one: Running = { url, child, output: () => output, stop: () => stop(child) };
  for (let i = 0; i < 200 && type === 'web' && child.exitCode === null; i += 1) {
    if (
      await fetch(url, { method: 'HEAD' }).then(
        () => true,
        () => false,
      )
    )
      return one;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return one;
}

/** SIGTERM to the innermost process, as the runtime gives it. Answers the exit code; null when it had to be killed. */
async function stop(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode;
  const ended = once(child, 'exit');
  process.kill(innermost(child.pid!), 'SIGTERM');
  const timer = setTimeout(() => process.kill(-child.pid!, 'SIGKILL'), 5_000);
  await ended;
  clearTimeout(timer);
  return child.exitCode;
}

// The shell around a command passes no signals on.
function innermost(pid: number): number {
  const [inner] = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean);
  return inner === undefined ? pid : innermost(Number(inner));
}
