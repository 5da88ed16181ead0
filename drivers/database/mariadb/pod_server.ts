// A MariaDB in a pod: its program and configuration, and how the platform reaches it.
import path from 'node:path';
import { serviceHostOf } from '../../../core/cluster_names';
import type { ProgramFound } from '../../../core/catalog/host_facts';
import type { DriverContext } from '../../../core/driver';
import type { DatabaseServer } from '../../database';
import { NotReady } from '../../hosted_server/readiness';
import { POD_CONF, POD_DATA, USER, projectIdOf, type PodProgram } from '../kubernetes/objects';
import type { PodEngine } from '../kubernetes/pod_engine';
import type { ServerPod } from '../kubernetes/server_pods';
import { digest } from '../proxied_server';
import { configuration, fileNames, firstStatements, logFileMb, settings, temporaryDirectory } from './config';
import type { MariadbPlace } from './config';
import type { Query, ServerAccess } from './connection';
import type { ToolAccess } from './tool';
import { openServerTunnel, withTunnelSocket, type NetworkAddress } from './tunnel';

export type MariadbPods = PodEngine & {
  /** Programs of this host for dumps, and their version; null: it has none. */
  tools(): Promise<ProgramFound | null>;
};

// Of their own directory: that of a disk may hold `lost+found`, which would be a database.
const DATA = path.posix.join(POD_DATA, 'data');
const UNFINISHED = path.posix.join(POD_DATA, '.setup');

/** Name of a file: the server may make its first data. */
const FIRST = 'first';
const LOST =
  'ERROR: The disk of the database has lost its data. Restore a backup, or have the operator bring the disk back.';

const place: MariadbPlace = {
  data: DATA,
  conf: POD_CONF,
  // Not all file systems of claims have sockets.
  socket: '/tmp/server.sock',
  // Of all families that the pod has.
  addresses: '*',
  tls: 'required',
};

/** @param attempt of a load: another one restarts the server */
export function programOf(
  server: DatabaseServer,
  { claim, image, isFirst, attempt = '' }: { claim: string; image: string; isFirst: boolean; attempt?: string },
): PodProgram {
  const lines = settings(server, place);
  return {
    ...{ image, port: server.port, claim, command: ['sh', '-c', startScript(server)] },
    files: {
      [fileNames.config]: configuration(server, place),
      [fileNames.first]: firstStatements(server, '%'),
      [fileNames.certificate]: server.tls.certificate,
      [fileNames.key]: server.tls.key,
      ...(isFirst && { [FIRST]: '' }),
    },
    // Passwords of users and certificates are changed without a restart.
    digest: digest([...lines, server.admin_password, attempt].join('\n')),
  };
}

/** System tables are made under another name: a first start that is cut short begins anew. */
function startScript({ size }: DatabaseServer): string {
  const options = [
    // --rpm: it looks up no name of this pod, and makes no file for PAM, which only root may.
    ...['--no-defaults', '--rpm', `--datadir=${UNFINISHED}`, '--skip-test-db'],
    ...['--auth-root-authentication-method=socket', `--innodb-log-file-size=${logFileMb(size.memory_mb)}M`],
  ].join(' ');
  return [
    'set -e',
    `if ! test -d ${DATA}; then`,
    `  if ! test -e ${path.posix.join(POD_CONF, FIRST)}; then echo '${LOST}' >&2; exit 1; fi`,
    `  rm -rf ${UNFINISHED}; mariadb-install-db ${options}; sync; mv ${UNFINISHED} ${DATA}`,
    'fi',
    `mkdir -p ${temporaryDirectory(place)}`,
    `exec mariadbd --defaults-file=${path.posix.join(POD_CONF, fileNames.config)}`,
  ].join('\n');
}

/** @param onCertificate gets that of the server, DER @throws NotReady */
export function accessOfPod(
  engine: MariadbPods,
  server: DatabaseServer,
  found: ServerPod,
  onCertificate: (certificate: Buffer) => void,
  ctx: DriverContext,
): ServerAccess {
  const at = addressOf(engine, server, found);
  return { way: { stream: () => openServerTunnel(at, onCertificate, ctx) }, data: DATA, accountHost: '%' };
}

/** For programs of this host. @throws NotReady */
export function withToolAccess<T>(
  engine: MariadbPods,
  server: DatabaseServer,
  found: ServerPod,
  work: (access: ToolAccess) => Promise<T>,
  ctx: DriverContext,
): Promise<T> {
  // No user of this host has this id (TENANT_UID_BASE).
  const owner = { uid: USER, gid: USER };
  return withTunnelSocket(
    addressOf(engine, server, found),
    owner,
    ({ socket, directory }) =>
      work({ way: { socketPath: socket }, data: DATA, accountHost: '%', socket, conf: directory, owner }),
    ctx,
  );
}

/** Such as 10.11.6. */
export async function serverVersionOf(query: Query): Promise<string> {
  const [row] = await query('SELECT VERSION() AS version');
  return /^[\d.]+/.exec(String(row?.version))?.[0] ?? 'unknown';
}

function addressOf({ prefix }: MariadbPods, server: DatabaseServer, { address }: ServerPod): NetworkAddress {
  const { authority } = server.tls;
  if (authority === undefined) throw new Error('the authority of the certificate is needed in a cluster');
  if (address === null) throw new NotReady();
  const serverName = serviceHostOf(prefix, projectIdOf(server), server.id);
  return { host: address, port: server.port, authority, serverName };
}
