// Backups and restores of a Redis or Valkey in a pod. The files are those of servers of a host, and in the same place.
import { rm } from 'node:fs/promises';
import path from 'node:path';
import type { DriverContext } from '../../../core/driver';
import { isAtLeast } from '../../../core/process/version_output';
import type { DatabaseServer, RestoreFrom } from '../../database';
import { makeBackup, withBackupFile } from '../../hosted_server/backups';
import { diskBytes } from '../disk_size';
import { POD_DATA } from '../kubernetes/objects';
import { imageOf } from '../kubernetes/pod_engine';
import { replacePodData, type PodReplacement } from '../kubernetes/replacement';
import { findServerPod, requireServerPod } from '../kubernetes/server_pods';
import { requireBackupId } from '../proxied_server';
import { withServerAt } from './connection';
import { podAddressOf, programOf, podVersionOf, type RedisPods } from './pod_server';
import { writeSnapshot } from './snapshot_stream';

const snapshotName = 'dump.rdb';

export function backup(
  engine: RedisPods,
  server: DatabaseServer,
  backupId: string,
  ctx: DriverContext,
): ReturnType<typeof makeBackup> {
  return makeBackup(
    engine,
    server.id,
    backupId,
    snapshotName,
    async (file) => {
      const address = podAddressOf(engine, server, await requireServerPod(engine, server, ctx));
      const version = await withServerAt(address, server, (send) => podVersionOf(engine, send), ctx);
      const taken_at = new Date().toISOString();
      await writeSnapshot(address.at, server, file, ctx);
      return { version, series: server.version, taken_at };
    },
    ctx,
  );
}

export async function restore(
  engine: RedisPods,
  server: DatabaseServer,
  from: RestoreFrom,
  ctx: DriverContext,
): Promise<void> {
  const id = requireBackupId(from);
  const present = await findServerPod(engine, server, ctx);
  const staging = { path: path.join(engine.directory, `.pods-${server.id}`) };
  const replacement: PodReplacement = {
    ...{ key: `restore ${from.id}`, server, bytes: diskBytes(engine, server) },
    program: (claim) => programOf(engine, server, claim, imageOf(engine, server, present)),
    withFiles: (work) =>
      withBackupFile(engine, staging, id, (file) => work([{ file, script: loadScript(server) }]), ctx),
    verify: (found) =>
      withServerAt(podAddressOf(engine, server, found), server, async (send) => void (await send('PING')), ctx),
  };
  try {
    await replacePodData(engine, replacement, ctx);
  } finally {
    await rm(staging.path, { recursive: true, force: true });
  }
}

/** As writeAppendOnlyFile (backup.ts), for an empty disk or one with the rest of a killed call. */
function loadScript({ version }: DatabaseServer): string {
  const [directory, file, manifest] = isAtLeast(version, 7, 0)
    ? ['appendonlydir', 'appendonlydir/appendonly.aof.1.base.rdb', 'appendonlydir/appendonly.aof.manifest']
    : ['.', 'appendonly.aof', null];
  return [
    `set -e; cd ${POD_DATA}; rm -rf appendonlydir appendonly.aof; mkdir -p ${directory}`,
    `cat > ${file}; test "$(wc -c < ${file})" -eq "$1"`,
    ...(manifest ? [`echo file appendonly.aof.1.base.rdb seq 1 type b > ${manifest}`] : []),
    'sync',
  ].join('; ');
}
