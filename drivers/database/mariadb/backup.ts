// Backups are compressed dumps of the database in one transaction. A dump can be loaded by any newer server.
import { spawn, type ChildProcess } from 'node:child_process';
import { createReadStream, createWriteStream } from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import type { BackupMade, RestoreFrom, DatabaseServer } from '../../database';
import { DriverError } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import { makeBackup, withBackupFile } from '../../hosted_server/backups';
import { ownerOf, requireServerDirectory, type ServerDirectory } from '../../hosted_server/server_directory';
import { killTask } from '../../hosted_server/unit';
import { fileNames } from './config';
import { identifier, withServer } from './connection';
import type { ProxiedContext } from '../proxied';
import { replaceServerData, requireBackupId, requireProgram, requireRestorable } from '../proxied_server';
import { waitUntilReady, hasData, install, start, stop, toolOf } from './server';
import { databaseOf } from './reconcile';
import { nextDisk } from '../disk_size';

const dumpName = 'dump.sql.gz';
const dumpOptions = [
  '--single-transaction',
  '--quick',
  '--routines',
  '--events',
  '--triggers',
  '--hex-blob',
  '--no-tablespaces',
];

/** @throws DriverError unsupported without mariadb-dump */
export async function backup(
  engine: ProxiedContext,
  spec: DatabaseServer,
  backupId: string,
  ctx: DriverContext,
): Promise<BackupMade> {
  const found = requireProgram(engine, spec.version);
  const tool = toolOf(found, 'mariadb-dump');
  const serverDirectory = await requireServerDirectory(engine, spec.id);
  await waitUntilReady(engine, serverDirectory, spec, ctx);
  return makeBackup(
    engine,
    spec.id,
    backupId,
    dumpName,
    async (file) => {
      const taken = new Date().toISOString();
      const child = await spawnTool(serverDirectory, tool, [...dumpOptions, databaseOf(spec)], ctx);
      const target = createWriteStream(file, { mode: 0o600, flush: true });
      await Promise.all([pipeline(child.stdout!, createGzip({ level: 1 }), target), exitOf(child)]);
      return { version: found.version, series: spec.version, taken_at: taken };
    },
    ctx,
  );
}

/** @throws DriverError unsupported for a point in time, invalid where the dump cannot be loaded */
export async function restore(
  engine: ProxiedContext,
  spec: DatabaseServer,
  from: RestoreFrom,
  ctx: DriverContext,
): Promise<void> {
  const id = requireBackupId(from);
  const tool = toolOf(requireProgram(engine, spec.version), 'mariadb');
  const setUp = (data: string): Promise<void> => install(engine, spec, data, ctx);
  const serverDirectory = await requireRestorable(engine, spec, { hasData, setUp }, ctx);
  const replaceWith = async (file: string): Promise<void> => {
    await killTask(engine, spec.id, 'setup', ctx);
    await replaceServerData(
      serverDirectory,
      {
        key: `restore ${from.id}`,
        disk: await nextDisk(engine, serverDirectory, spec),
        now: spec,
        before: spec,
        fill: setUp,
        start: (server) => start(engine, serverDirectory, server, ctx),
        waitUntilReady: (server) => waitUntilReady(engine, serverDirectory, server, ctx),
        stop: () => stop(engine, spec.id, ctx),
        load: () => load(serverDirectory, spec, tool, file, ctx),
      },
      ctx,
    );
  };
  await withBackupFile(engine, serverDirectory, id, replaceWith, ctx);
}

// Tenant users are created in the new data by `ensure` only, so nobody can read incomplete data. Restarted after a
// crash.
async function load(
  serverDirectory: ServerDirectory,
  spec: DatabaseServer,
  tool: string,
  file: string,
  ctx: DriverContext,
): Promise<void> {
  const name = identifier(databaseOf(spec));
  await withServer(
    serverDirectory,
    spec,
    async (query) => {
      await query(`DROP DATABASE IF EXISTS ${name}`);
      await query(`CREATE DATABASE ${name}`);
    },
    ctx,
  );
  const child = await spawnTool(serverDirectory, tool, ['--binary-mode', databaseOf(spec)], ctx);
  const source = pipeline(createReadStream(file), createGunzip(), child.stdin!).catch((error: unknown) => {
    child.kill('SIGKILL');
    throw error;
  });
  const results = await Promise.allSettled([exitOf(child), source]);
  const failed = results.find((one) => one.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

// Runs as the user of the server, not as the platform. The password is in a file of that user.
async function spawnTool(
  serverDirectory: ServerDirectory,
  tool: string,
  options: string[],
  ctx: DriverContext,
): Promise<ChildProcess> {
  const { uid, gid } = await ownerOf(serverDirectory);
  const user = process.getuid?.() === 0 ? { uid, gid } : {};
  const child = spawn(tool, [`--defaults-file=${path.join(serverDirectory.conf, fileNames.client)}`, ...options], {
    ...user,
    cwd: '/',
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' },
    signal: ctx.signal,
    killSignal: 'SIGKILL',
  });
  child.stdin!.on('error', () => undefined);
  return child;
}

function exitOf(child: ChildProcess): Promise<void> {
  let complaint = '';
  child.stderr!.setEncoding('utf8').on('data', (text: string) => (complaint = (complaint + text).slice(-2_000)));
  return new Promise((resolve, reject) => {
    child.once('error', (error) =>
      reject(
        Object.assign(new DriverError('transient', 'A program of the engine could not be run.'), { cause: error }),
      ),
    );
    child.once('close', (code) =>
      code === 0
        ? resolve()
        : reject(Object.assign(new DriverError('transient', 'A program of the engine failed.'), { cause: complaint })),
    );
  });
}
