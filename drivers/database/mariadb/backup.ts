// Backups are dumps of the database in one transaction, compressed. A dump is read by any newer server.
import { spawn, type ChildProcess } from 'node:child_process';
import { createReadStream, createWriteStream } from 'node:fs';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import type { BackupMade, RestoreFrom, ServerSpec } from '../../database';
import { DriverError } from '../../driver';
import type { DriverContext } from '../../driver';
import { makeBackup, requireBackup } from '../backups';
import { ownerOf, requireHome, type Home } from '../home';
import { patiently } from '../readiness';
import { replaceData } from '../replacement';
import { endTask } from '../unit';
import { fileNames } from './config';
import { identifier, withServer } from './connection';
import { awaken, install, programOf, start, stop, toolOf, type MariadbEstate } from './server';
import { databaseOf } from './wishes';

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
  estate: MariadbEstate,
  spec: ServerSpec,
  backupId: string,
  ctx: DriverContext,
): Promise<BackupMade> {
  const found = programOf(estate, spec.version);
  const tool = toolOf(found, 'mariadb-dump');
  const home = await requireHome(estate, spec.id);
  await awaken(estate, home, spec, ctx);
  return makeBackup(
    estate,
    spec.id,
    backupId,
    dumpName,
    async (file) => {
      const taken = new Date().toISOString();
      const child = await speaking(home, tool, [...dumpOptions, databaseOf(spec)], ctx);
      const target = createWriteStream(file, { mode: 0o600, flush: true });
      await Promise.all([pipeline(child.stdout!, createGzip({ level: 1 }), target), ended(child)]);
      return { version: found.version, series: spec.version, taken_at: taken };
    },
    ctx,
  );
}

/** @throws DriverError unsupported for a point in time, invalid where the dump cannot be read */
export async function restore(
  estate: MariadbEstate,
  spec: ServerSpec,
  from: RestoreFrom,
  ctx: DriverContext,
): Promise<void> {
  const { backup_id: backupId } = from;
  if (backupId === null || from.until !== null)
    throw new DriverError('unsupported', 'The engine cannot go back to a point in time. Restore a backup.');
  const tool = toolOf(programOf(estate, spec.version), 'mariadb');
  const home = await requireHome(estate, spec.id);
  const { file } = await requireBackup(estate, from.server_id, backupId);
  await endTask(estate, spec.id, 'setup', ctx);
  await replaceData(
    home,
    {
      key: `restore ${from.id}`,
      fill: (draft) => install(estate, spec, draft, ctx),
      stop: () => stop(estate, spec.id, ctx),
      prove: async () => {
        await patiently(
          () => start(estate, home, spec, ctx),
          () => awaken(estate, home, spec, ctx),
          ctx,
        );
        await load(home, spec, tool, file, ctx);
      },
      goBack: async () => (spec.running ? start(estate, home, spec, ctx) : undefined),
    },
    ctx,
  );
  if (!spec.running) await stop(estate, spec.id, ctx);
}

// Tenants have no users in the new data until ensure makes them, so nobody sees a half of it. Begun again after a crash.
async function load(home: Home, spec: ServerSpec, tool: string, file: string, ctx: DriverContext): Promise<void> {
  const name = identifier(databaseOf(spec));
  await withServer(
    home,
    spec,
    async (ask) => {
      await ask(`DROP DATABASE IF EXISTS ${name}`);
      await ask(`CREATE DATABASE ${name}`);
    },
    ctx,
  );
  const child = await speaking(home, tool, ['--binary-mode', databaseOf(spec)], ctx);
  const source = pipeline(createReadStream(file), createGunzip(), child.stdin!).catch((error: unknown) => {
    child.kill('SIGKILL');
    throw error;
  });
  const results = await Promise.allSettled([ended(child), source]);
  const failed = results.find((one) => one.status === 'rejected');
  if (failed !== undefined) throw failed.reason;
}

// As the user of the server, not as ours. Its password is in a file of that user.
async function speaking(home: Home, tool: string, options: string[], ctx: DriverContext): Promise<ChildProcess> {
  const { uid, gid } = await ownerOf(home);
  const user = process.getuid?.() === 0 ? { uid, gid } : {};
  const child = spawn(tool, [`--defaults-file=${path.join(home.conf, fileNames.client)}`, ...options], {
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

function ended(child: ChildProcess): Promise<void> {
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
