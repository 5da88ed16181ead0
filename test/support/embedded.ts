// A new directory for each test, and the embedded servers in it.
import type { ChildProcess } from 'node:child_process';
import * as fs from 'node:fs';
import * as path from 'node:path';
import pg from 'pg';
import { type Embedded, type EmbeddedOptions, openEmbedded } from '../../server/platform/embedded';
import { type Postmaster, readPostmaster } from '../../server/platform/embedded/supervisor';
import { fastDirectory } from './databases/database';
import { firstOutput, kill, processesWith, spawnProgram } from './processes/processes';
import { until } from './builds/runtime';

const FLAGS = ['-c', 'fsync=off', '-c', 'max_connections=20', '-c', 'shared_buffers=16MB'];

interface EmbeddedTrial {
  /** As it is named in arguments of processes. */
  readonly dataDir: string;
  /** Opened in this process; closed after the test. */
  open(options?: Partial<EmbeddedOptions>): Promise<Embedded>;
  /** Another process that opens the server and stays. */
  hold(user?: { uid?: number; gid?: number }): { process: ChildProcess; url: Promise<string> };
  /** A process that runs until the end of the test, and tells when it is ready. */
  run(program: string): { process: ChildProcess; ready: Promise<string> };
  letGo(): Promise<void>;
  server(): Postmaster | undefined;
  stopped(): Promise<void>;
  /** The folder of the data, and what lies beside it. */
  data(): string;
  inside(name: string): string;
  /** The shell that runs the server, and the one that watches the pipe. */
  keepers(): number[];
}

/** To be called where tests are declared: each gets a directory of its own, which the engine's user may enter. */
export function openEmbeddedTrial(): EmbeddedTrial {
  const holders: ChildProcess[] = [];
  const opened: Embedded[] = [];
  const self: EmbeddedTrial = {
    ...placesOf(() => self.dataDir),
    dataDir: '',
    open,
    hold: startHolder,
    run,
    letGo: releaseAll,
  };
  async function open(options: Partial<EmbeddedOptions> = {}): Promise<Embedded> {
    const server = await openEmbedded({ dataDir: self.dataDir, flags: FLAGS, ...options });
    opened.push(server);
    return server;
  }
  function startHolder(user: { uid?: number; gid?: number } = {}): { process: ChildProcess; url: Promise<string> } {
    const program = `
    require('./server/platform/embedded.ts').openEmbedded({ dataDir: process.argv[1], flags: ${JSON.stringify(FLAGS)} })
      .then(({ url }) => console.log(url), (error) => {
        console.error(error.constructor.name + ': ' + error.message);
        process.exit(1);
      });
    setInterval(() => {}, 1000);`;
    const child = spawnProgram(program, [self.dataDir], user);
    holders.push(child);
    return { process: child, url: firstOutput(child) };
  }
  function run(program: string): { process: ChildProcess; ready: Promise<string> } {
    const child = spawnProgram(program, []);
    holders.push(child);
    return { process: child, ready: firstOutput(child) };
  }
  async function releaseAll(): Promise<void> {
    await Promise.all(holders.splice(0).map(kill));
  }
  beforeEach(() => {
    Object.assign(self, { dataDir: fs.mkdtempSync(path.join(fastDirectory(), 'embedded-test-')) });
    fs.chmodSync(self.dataDir, 0o755);
  });
  afterEach(async () => {
    await releaseAll();
    await Promise.all(opened.splice(0).map((server) => server.close()));
    await self.stopped();
    fs.rmSync(self.dataDir, { recursive: true, force: true, maxRetries: 5 });
  });
  return self;
}

function placesOf(dataDir: () => string): Pick<EmbeddedTrial, 'server' | 'stopped' | 'data' | 'inside' | 'keepers'> {
  const home = (): string => path.join(dataDir(), 'postgres');
  const nameOfData = (): string | undefined =>
    fs.existsSync(home()) ? fs.readdirSync(home()).find((entry) => /^data-\d\d$/.test(entry)) : undefined;
  const data = (): string => path.join(fs.realpathSync(home()), nameOfData()!);
  const server = (): Postmaster | undefined => (nameOfData() ? readPostmaster(data()) : undefined);
  return {
    data,
    server,
    stopped: () => until(() => !server()),
    inside: (name) => path.join(home(), name),
    keepers: () =>
      processesWith(dataDir())
        .filter(({ args }) => args.startsWith('/bin/sh'))
        .map(({ pid }) => pid),
  };
}

export async function query(url: string, text: string, values: unknown[] = []): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(text, values)).rows as unknown[];
  } finally {
    await client.end();
  }
}
