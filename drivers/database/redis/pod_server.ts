// A Redis or Valkey in a pod: its program and configuration, and where it answers.
import path from 'node:path';
import { serviceHostOf } from '../../../core/cluster_names';
import { isAtLeast } from '../../../core/process/version_output';
import type { DatabaseServer } from '../../database';
import { NotReady } from '../../hosted_server/readiness';
import { POD_CONF, POD_DATA, projectIdOf, type PodProgram } from '../kubernetes/objects';
import type { PodEngine } from '../kubernetes/pod_engine';
import type { ServerPod } from '../kubernetes/server_pods';
import { digest } from '../proxied_server';
import { configuration, fileNames, settings, type RedisPlace } from './config';
import { infoFieldsOf, type RedisAddress, type SendCommand } from './connection';

export type RedisPods = PodEngine & { name: 'redis' | 'valkey' };

export interface NetworkAddress extends RedisAddress {
  at: Exclude<RedisAddress['at'], { path: string }>;
}

/** @throws NotReady */
export function podAddressOf({ prefix }: RedisPods, server: DatabaseServer, { address }: ServerPod): NetworkAddress {
  const { authority } = server.tls;
  if (authority === undefined) throw new Error('the authority of the certificate is needed in a cluster');
  if (address === null) throw new NotReady();
  const serverName = serviceHostOf(prefix, projectIdOf(server), server.id);
  return { at: { host: address, port: server.port, authority, serverName }, conf: POD_CONF };
}

export function programOf(engine: RedisPods, server: DatabaseServer, claim: string, image: string): PodProgram {
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
export async function podVersionOf({ name }: RedisPods, send: SendCommand): Promise<string> {
  const info = infoFieldsOf(await send('INFO', 'server'));
  return info.get(`${name}_version`) ?? 'unknown';
}
