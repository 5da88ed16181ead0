// A server goes on on a larger disk, with what it has in memory.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chown } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { commandEnvironment } from '../../../core/process/command';
import type { DatabaseServer } from '../../database';
import { DriverError } from '../../../core/driver';
import type { DriverContext } from '../../../core/driver';
import type { NextDisk } from '../../hosted_server/replacement';
import { ownerOf, socketOf, type Owner, type ServerDirectory } from '../../hosted_server/server_directory';
import { stateOf } from '../../hosted_server/unit';
import { requireProgram } from '../proxied_server';
import { adminOf } from './acl';
import { replaceRedisData, writeAppendOnlyFile } from './backup';
import { withServer } from './connection';
import type { RedisContext } from './server';

/**
 * A server that met the end of its disk goes on on a larger one with what it has in memory. Its file does not always
 * load: after a write that was cut short Redis 7.0 truncates the file and writes on at the old position, which leaves
 * zeros in between. @returns false where it does not run, or the host lacks the command line client of the engine
 */
export async function moveToLargerDisk(
  engine: RedisContext,
  serverDirectory: ServerDirectory,
  spec: DatabaseServer,
  disk: NextDisk,
  ctx: DriverContext,
): Promise<boolean> {
  if ((await stateOf(engine, spec.id)).state.state !== 'running') return false;
  const { path: program, version } = requireProgram(engine, spec.version);
  const client = path.join(path.dirname(program), `${engine.name}-cli`);
  if (!existsSync(client)) return false;
  const owner = await ownerOf(serverDirectory);
  const fill = (temporary: string) =>
    withWritesPaused(serverDirectory, spec, version, ctx, () =>
      writeAppendOnlyFile(
        temporary,
        (to) => downloadSnapshot(serverDirectory, spec, client, to, owner, ctx),
        version,
        owner,
      ),
    );
  await replaceRedisData(
    engine,
    serverDirectory,
    { key: `room ${disk.bytes}`, now: spec, before: spec, fill, disk },
    ctx,
  );
  return true;
}

// Until the process ends. Servers before 6.2 only pause everything; those that cannot write refuse writes anyway.
async function withWritesPaused(
  serverDirectory: ServerDirectory,
  spec: DatabaseServer,
  version: string,
  ctx: DriverContext,
  work: () => Promise<void>,
): Promise<void> {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  const command = (...words: string[]) => withServer(serverDirectory, spec, (send) => send('CLIENT', ...words), ctx);
  const canPause = major > 6 || (major === 6 && minor >= 2);
  if (canPause) await command('PAUSE', String(Math.max(1, ctx.deadline - Date.now())), 'WRITE');
  try {
    await work();
  } catch (error) {
    if (canPause) await command('UNPAUSE').catch(() => undefined);
    throw error;
  }
}

// As a replica gets it: nothing is written to the disk of the server.
async function downloadSnapshot(
  serverDirectory: ServerDirectory,
  spec: DatabaseServer,
  client: string,
  to: string,
  owner: Owner,
  ctx: DriverContext,
): Promise<void> {
  const env = { ...commandEnvironment, REDISCLI_AUTH: spec.admin_password };
  await promisify(execFile)(client, ['-s', socketOf(serverDirectory), '--user', adminOf(spec.id), '--rdb', to], {
    ...{ env, signal: ctx.signal, killSignal: 'SIGKILL' },
  }).catch((cause: unknown) => {
    throw Object.assign(new DriverError('transient', 'The server could not be copied to a larger disk.', 5_000), {
      cause,
    });
  });
  if (process.getuid?.() === 0) await chown(to, owner.uid, owner.gid);
}
