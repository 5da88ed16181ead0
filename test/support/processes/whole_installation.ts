// An installation with a directory and a repository of backups of its own, which a test may destroy.
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import * as fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import { setTimeout as sleep } from 'node:timers/promises';
import { ROOT } from '../runner/repository';
import { startService, type FirstKey, type StartedService } from './started_service';

export interface Ran {
  code: number | null;
  out: string;
  err: string;
}

export interface WholeInstallation {
  data: string;
  repository: Record<string, string>;
  /** @param first key of the installation, where it was restored */
  start(settings?: Record<string, string>, first?: FirstKey): Promise<StartedService>;
  service(): StartedService;
  /** The service at the ports of before, which may not come to answer. */
  launch(): ChildProcess;
  /** Waits for the backup that the service makes by itself, and for its proof. */
  backedUp(): Promise<void>;
  /** The operator's command. */
  platform(args: string[], env?: Record<string, string>): Ran;
  /** The same, which a test ends by itself. Of a process group of its own. */
  begin(args: string[], env?: Record<string, string>): ChildProcess;
  /** Ends all of its processes at once. */
  kill(): Promise<void>;
  /** And its directory is gone. */
  destroy(): Promise<void>;
  remove(): Promise<void>;
}

const [FIRST_PORT, PORTS, RANGES] = [18_000, 40, 100];
const BACKED_UP_MS = 240_000;
const PROGRAM = ['tools/scripts/start.mjs', 'server/operator/main.js'];

/** @param shared repository of another one */
export function wholeInstallation(shared?: Record<string, string>): WholeInstallation {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'whole-'));
  fs.chmodSync(folder, 0o755);
  const data = path.join(folder, 'data');
  fs.mkdirSync(data, { mode: 0o755 });
  const repository = shared ?? {
    RESTIC_REPOSITORY: path.join(folder, 'repository'),
    RESTIC_PASSWORD_FILE: path.join(folder, 'passphrase'),
  };
  if (!shared) fs.writeFileSync(repository.RESTIC_PASSWORD_FILE as string, 'of the test\n', { mode: 0o600 });
  let service: StartedService | null = null;
  // Of others on this machine, the rules of their networks guard the ports of their databases.
  const from = FIRST_PORT + (crc32(repository.RESTIC_REPOSITORY ?? '') % RANGES) * PORTS;
  const ports = { DATABASE_PORTS: `${from}-${from + PORTS - 1}` };
  const env = (more: Record<string, string> = {}): NodeJS.ProcessEnv => ({
    ...(service?.env ?? { ...process.env, PLATFORM_DATA_DIR: data, NODE_ENV: 'production' }),
    ...{ ...ports, ...repository, ...more },
  });
  const kill = async (): Promise<void> => {
    for (let round = 0; round < 3; round += 1) {
      for (const pid of fs.readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid))
        if (isOf(pid, data)) process.kill(Number(pid), 'SIGKILL');
      await sleep(500);
    }
  };
  const destroy = async (): Promise<void> => {
    await kill();
    // The directory `runtime` keeps its user ids from other installations of this host.
    for (const directory of [data, path.join(data, 'runtime')])
      for (const name of fs.existsSync(directory) ? fs.readdirSync(directory) : [])
        if (name !== 'runtime' || directory !== data)
          fs.rmSync(path.join(directory, name), { recursive: true, force: true });
  };
  return {
    ...{ data, repository, kill, destroy },
    async start(settings = {}, first = service?.first) {
      const quiet = { DNS_PORT: '0', REGISTRY_PORT: '0', S3_PORT: '0', SHUTDOWN_GRACE_SECONDS: '2' };
      const existing = first === undefined ? { data } : { data, first };
      return (service = await startService({ ...quiet, ...ports, ...repository, ...settings }, existing));
    },
    service: () => service as StartedService,
    launch: () =>
      spawn(process.execPath, ['tools/scripts/start.mjs', 'server/main.js'], {
        cwd: ROOT,
        env: env(),
        stdio: 'ignore',
      }),
    async backedUp() {
      const file = path.join(data, 'backup/last.json');
      const isProven = (): boolean =>
        fs.existsSync(file) && (JSON.parse(fs.readFileSync(file, 'utf8')) as { proof: unknown }).proof !== null;
      for (const end = Date.now() + BACKED_UP_MS; !isProven(); await sleep(250))
        if (Date.now() > end) throw new Error('the service has made no backup');
    },
    platform(args, more) {
      const ran = spawnSync(process.execPath, [...PROGRAM, ...args], { cwd: ROOT, encoding: 'utf8', env: env(more) });
      return { code: ran.status, out: ran.stdout, err: ran.stderr };
    },
    begin: (args, more) =>
      spawn(process.execPath, [...PROGRAM, ...args], {
        ...{ cwd: ROOT, env: env(more), detached: true, stdio: ['ignore', 'ignore', 'pipe'] },
      }),
    async remove() {
      await destroy();
      fs.rmSync(folder, { recursive: true, force: true });
    },
  };
}

function isOf(pid: string, data: string): boolean {
  try {
    const words = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8');
    return (
      words.includes(data) || fs.readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`PLATFORM_DATA_DIR=${data}`)
    );
  } catch {
    return false;
  }
}
