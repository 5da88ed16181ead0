// A Redis or Valkey in a pod: its program and configuration, and where it answers.
import path from 'node:path';
import { serviceHostOf } from '../../../core/cluster_names';
import { DriverError } from '../../../core/driver';
import { isAtLeast } from '../../../core/process/version_output';
import type { DatabaseServer } from '../../database';
import type { BackupStore } from '../../backup_store';
import { NotReady } from '../../hosted_server/readiness';
import type { ClaimOptions } from '../../workload/kubernetes/claims';
import { POD_CONF, POD_DATA, projectIdOf, type PodProgram } from '../kubernetes/objects';
import type { ServerLogs } from '../kubernetes/server_logs';
import type { ServerPod } from '../kubernetes/server_pods';
import { digest } from '../proxied_server';
import { configuration, fileNames, settings, type RedisPlace } from './config';
import { infoFieldsOf, type RedisAddress, type SendCommand } from './connection';

export interface PodEngine extends ClaimOptions {
  name: 'redis' | 'valkey';
  directory: string;
  store: BackupStore | null;
  images: ReadonlyMap<string, string>;
  gigabyteBytes: number;
  logs: ServerLogs;
}

export interface NetworkAddress extends RedisAddress {
  at: Exclude<RedisAddress['at'], { path: string }>;
}

/** @throws NotReady */
export function podAddressOf({ prefix }: PodEngine, server: DatabaseServer, { address }: ServerPod): NetworkAddress {
  const { authority } = server.tls;
  if (authority === undefined) throw new Error('the authority of the certificate is needed in a cluster');
  if (address === null) throw new NotReady();
  const serverName = serviceHostOf(prefix, projectIdOf(server), server.id);
  return { at: { host: address, port: server.port, authority, serverName }, conf: POD_CONF };
}

/** @throws DriverError unsupported where no image is named for its version, and it does not have one already */
export function programOf(
  engine: PodEngine,
  server: DatabaseServer,
  claim: string,
  present: ServerPod | 'absent' | 'foreign',
): PodProgram {
  const has = typeof present === 'string' ? undefined : present.statefulSet.spec?.template.spec?.containers[0]?.image;
  const image = engine.images.get(server.version) ?? has;
  if (image === undefined)
    throw unsupported(`The operator has named no image of ${engine.name} ${server.version} in DATABASE_IMAGES.`);
  const [place, version] = [podPlace(server), server.version];
  return {
    ...{ image, port: server.port, claim },
    command: [`${engine.name}-server`, path.posix.join(POD_CONF, fileNames.config)],
    files: {
      [fileNames.config]: configuration(server, place, version),
      [fileNames.certificate]: server.tls.certificate,
      [fileNames.key]: server.tls.key,
    },
    // Passwords of users and certificates are changed without a restart.
    digest: digest([...settings(server, place, version), server.admin_password].join('\n')),
  };
}

/** The prefix - (since 6.2) makes an address optional: not all clusters have IPv6. */
function podPlace({ version }: DatabaseServer): RedisPlace {
  const addresses = isAtLeast(version, 6, 2) ? '0.0.0.0 -::*' : '0.0.0.0';
  return { data: POD_DATA, conf: POD_CONF, socket: null, addresses };
}

/** Valkey reports the version of Redis that it is compatible with, too. */
export async function podVersionOf({ name }: PodEngine, send: SendCommand): Promise<string> {
  const info = infoFieldsOf(await send('INFO', 'server'));
  return info.get(`${name}_version`) ?? 'unknown';
}

export function unsupported(message: string): DriverError {
  return new DriverError('unsupported', message);
}
