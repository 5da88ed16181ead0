// The command line as it is installed: one bundled file, run as a process with a home of its own, beside a service.
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import * as fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { logIn, type Page, type Person } from '../identity/person';
import { ROOT } from '../runner/repository';
import type { TestService } from '../service';

const CLI = path.join(ROOT, 'clients/cli');
export const BINARY = path.join(CLI, 'dist/svc.cjs');
const RUN_MS = 60_000;

export interface Ran {
  code: number | null;
  stdout: string;
  stderr: string;
}

export interface RunOptions {
  env?: Record<string, string>;
  cwd?: string;
  input?: string;
  /** Default: a minute. */
  withinMs?: number;
}

export interface Home {
  /** The person's directory; what svc keeps is below `.config`. */
  directory: string;
  /** A folder of the person, in which commands run. */
  folder: string;
  env: Record<string, string>;
  /** Runs a command to its end. */
  svc(args: string[], options?: RunOptions): Promise<Ran>;
  /** Runs a command that must succeed, and gives what it printed. */
  output(args: string[], options?: RunOptions): Promise<string>;
  start(args: string[], options?: RunOptions): Running;
  credentials(): { current?: string; servers: Record<string, Record<string, string>> };
  remove(): void;
}

export interface Running {
  child: ChildProcess;
  stdout(): string;
  stderr(): string;
  ended: Promise<Ran>;
  /** @throws Error with all output where it does not come */
  until(pattern: RegExp): Promise<RegExpExecArray>;
}

export function buildCli(): void {
  execFileSync(process.execPath, [path.join(CLI, 'build.mjs'), '--if-stale'], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

/** A person without a login. With a service, its address and key are in the environment. */
export function openHome(service?: Pick<TestService, 'url' | 'key' | 'project'>): Home {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'svc-home-'));
  const folder = path.join(directory, 'shop');
  fs.mkdirSync(folder);
  const env = {
    ...{ PATH: process.env.PATH ?? '', HOME: directory, TMPDIR: directory, LANG: 'C.UTF-8' },
    ...(service && { SVC_URL: service.url, SVC_TOKEN: service.key, SVC_PROJECT: service.project }),
  };
  const start = (args: string[], options: RunOptions = {}): Running =>
    follow(
      spawn(process.execPath, [BINARY, ...args], { cwd: options.cwd ?? folder, env: { ...env, ...options.env } }),
      options.input,
      options.withinMs,
    );
  const home: Home = {
    ...{ directory, folder, env, start },
    svc: (args, options) => start(args, options).ended,
    async output(args, options) {
      const { code, stdout, stderr } = await home.svc(args, options);
      if (code !== 0) throw new Error(`svc ${args.join(' ')} ended with ${code}:\n${stdout}\n${stderr}`);
      return stdout;
    },
    credentials: () => JSON.parse(fs.readFileSync(path.join(directory, '.config/svc/credentials.json'), 'utf8')),
    remove: () => fs.rmSync(directory, { recursive: true, force: true }),
  };
  return home;
}

/** Logs in with a browser that the person sits at. */
export async function logInWith(home: Home, service: Pick<TestService, 'url'>, person: Person): Promise<Ran> {
  const running = home.start(['login', '--browser', '--url', service.url], { env: { BROWSER: '/bin/true' } });
  const [url] = await running.until(/http\S+\/oauth\/authorize\?\S+/);
  await fetch((await allow(person, await person.open(url))).url, { headers: { Connection: 'close' } });
  return running.ended;
}

/** The person agrees, after they have logged in where that is asked for. */
export async function allow(person: Person, page: Page): Promise<Page> {
  return person.submit(page.title === 'Log in' ? await logIn(person, page) : page, { action: 'allow' });
}

/** Standard input stays open, for somebody who types. */
export const OPEN = Symbol('open');

/** Runs a command on a terminal of so many columns (`script` of util-linux). */
export function onTerminal(home: Home, args: string[], given: TerminalOptions = {}): Running {
  const { columns = 80, rows = 24, env = {}, cwd } = given;
  const words = [process.execPath, BINARY, ...args].map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
  const command = `stty cols ${columns} rows ${rows}; exec ${words.join(' ')}`;
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    cwd: cwd ?? home.folder,
    env: { ...home.env, TERM: 'xterm', SHELL: '/bin/sh', ...env },
  });
  return follow(child, OPEN);
}

interface TerminalOptions {
  columns?: number;
  rows?: number;
  env?: Record<string, string>;
  cwd?: string;
}

/** What a process prints, as it comes. */
export function follow(child: ChildProcess, input: string | typeof OPEN = '', withinMs = RUN_MS): Running {
  const text = { stdout: '', stderr: '' };
  let wake = (): void => {};
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.on('data', (part: Buffer) => {
      text[name] += part.toString();
      wake();
    });
  child.stdin?.on('error', () => {});
  if (input !== OPEN) child.stdin?.end(input);
  const timer = setTimeout(() => child.kill('SIGKILL'), withinMs);
  let isOver = false;
  const ended = new Promise<Ran>((resolve) =>
    child.once('close', (code) => {
      clearTimeout(timer);
      isOver = true;
      wake();
      resolve({ code, ...text });
    }),
  );
  return {
    child,
    ended,
    stdout: () => text.stdout,
    stderr: () => text.stderr,
    async until(pattern) {
      for (;;) {
        const found = pattern.exec(text.stdout + text.stderr);
        if (found) return found;
        if (isOver) throw new Error(`${pattern} did not come:\n${text.stdout}\n${text.stderr}`);
        await new Promise<void>((resolve) => (wake = resolve));
      }
    },
  };
}
