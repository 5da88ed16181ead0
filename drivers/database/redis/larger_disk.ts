// Moves a running server to a larger disk, from its memory.
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chown } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { commandEnvironment } from '../../../core/process/command';
import type { DatabaseServer } from '../../database';
import { isAtLeast } from '../../../core/process/version_output';
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
 * Moves a server with a full disk to a larger one, with the data in its memory. Its file does not always load: after a
 * truncated write, Redis 7.0 truncates the file and continues at the old offset, which leaves zeros in between.
 * @returns false where it is not running, or the host lacks the engine's command line client
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

// Pauses writes until the process ends. Before 6.2 only all commands can be paused; a server with a full disk rejects
// writes anyway.
async function withWritesPaused(
  serverDirectory: ServerDirectory,
  spec: DatabaseServer,
  version: string,
  ctx: DriverContext,
  work: () => Promise<void>,
): Promise<void> {
  const command = (...words: string[]) => withServer(serverDirectory, spec, (send) => send('CLIENT', ...words), ctx);
  const canPause = isAtLeast(version, 6, 2);
  if (canPause) await command('PAUSE', String(Math.max(1, ctx.deadline - Date.now())), 'WRITE');
  try {
    await work();
  } catch (error) {
    if (canPause) await command('UNPAUSE').catch(() => undefined);
    throw error;
  }
}

// Through replication: nothing is written to the disk of the server.
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
