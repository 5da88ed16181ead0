// Backups and restores of a MariaDB in a pod. The files are those of servers of a host, and in the same place; the
// programs for dumps are those of this host, and come through a tunnel.
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import path from 'node:path';
import type { ProgramFound } from '../../../core/catalog/host_facts';
import { DriverError, type DriverContext } from '../../../core/driver';
import { isAtLeast } from '../../../core/process/version_output';
import type { BackupMade, DatabaseServer, RestoreFrom } from '../../database';
import { makeBackup, withBackupFile } from '../../hosted_server/backups';
import { diskBytes } from '../disk_size';
import { imageOf, mayBegin, podNotesOf } from '../kubernetes/pod_engine';
import { replacePodData, type PodReplacement } from '../kubernetes/replacement';
import { findServerPod, requireServerPod, type ServerPod } from '../kubernetes/server_pods';
import { requireBackupId } from '../proxied_server';
import { dumpName, withLoadMemory } from './backup';
import { withServer, type Query } from './connection';
import { dump } from './dump';
import { load } from './load';
import { accessOfPod, programOf, serverVersionOf, withToolAccess, type MariadbPods } from './pod_server';
import type { ToolAccess } from './tool';

/** @throws DriverError unsupported without mariadb-dump */
export async function backup(
  engine: MariadbPods,
  server: DatabaseServer,
  backupId: string,
  ctx: DriverContext,
): Promise<BackupMade> {
  const tools = await requireTools(engine);
  return makeBackup(
    engine,
    server.id,
    backupId,
    dumpName,
    async (file) => {
      const found = await requireServerPod(engine, server, ctx);
      const taken_at = new Date().toISOString();
      return withToolAccess(
        engine,
        server,
        found,
        async (access) => {
          const version = await withServer(access, server, serverVersionOf, ctx);
          const missing = await dump(access, server, olderOf(tools, version), file, ctx);
          return { version, series: server.version, taken_at, ...(missing !== null && { missing }) };
        },
        ctx,
      );
    },
    ctx,
  );
}

/** @throws DriverError unsupported for a point in time, invalid where the dump cannot be loaded */
export async function restore(
  engine: MariadbPods,
  server: DatabaseServer,
  from: RestoreFrom,
  ctx: DriverContext,
): Promise<void> {
  const id = requireBackupId(from);
  const tools = await requireTools(engine);
  const present = await findServerPod(engine, server, ctx);
  const image = imageOf(engine, server, present);
  const staging = { path: path.join(engine.directory, `.pods-${server.id}`) };
  const loading = withLoadMemory(server);
  // A killed load leaves the platform without rights until a restart.
  const attempt = randomBytes(6).toString('hex');
  const replaceWith = (file: string): Promise<void> => {
    const replacement: PodReplacement = {
      ...{ key: `restore ${from.id}`, server, bytes: diskBytes(engine, server) },
      program: (claim) => programOf(server, { claim, image, isFirst: mayBegin(present, claim) }),
      loader: { server: loading, program: (claim) => programOf(loading, { claim, image, isFirst: true, attempt }) },
      verify: (found) =>
        withServer(
          accessOfPod(engine, server, found, () => undefined, ctx),
          server,
          verify,
          ctx,
        ),
      load: (found) => loadInto(engine, server, found, { tools, file }, ctx),
    };
    return replacePodData(engine, replacement, ctx);
  };
  try {
    await withBackupFile(engine, staging, id, replaceWith, ctx);
  } finally {
    await rm(staging.path, { recursive: true, force: true });
  }
}

async function loadInto(
  engine: MariadbPods,
  server: DatabaseServer,
  found: ServerPod,
  { tools, file }: { tools: ProgramFound; file: string },
  ctx: DriverContext,
): Promise<void> {
  const work = async (access: ToolAccess): Promise<void> => {
    const version = await withServer(access, server, serverVersionOf, ctx);
    await load({ access, notes: podNotesOf(engine, found, ctx) }, server, olderOf(tools, version), file, ctx);
  };
  await withToolAccess(engine, server, found, work, ctx);
}

async function verify(query: Query): Promise<void> {
  await query('SELECT 1');
}

async function requireTools(engine: MariadbPods): Promise<ProgramFound> {
  const tools = await engine.tools();
  if (tools !== null) return tools;
  throw new DriverError('unsupported', 'The programs of MariaDB for backups are not installed on this host.');
}

/** What both the programs and the server can do. */
function olderOf(tools: ProgramFound, version: string): ProgramFound {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return isAtLeast(tools.version, major, minor) ? { ...tools, version } : tools;
}
