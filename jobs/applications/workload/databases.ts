// Databases for programs that a cluster runs: those of this host have another address than on the host, those of the
// cluster the one that they have. Certificates of the authority are in files that come with the program.
import { DriverError } from '../../../core/driver';
import { overrideVariables } from '../../../core/process/variables';
import type { Workload } from '../../../drivers/workload';
import type { AttachedDatabase } from '../../../models/applications/attached_database';
import { endpointHost } from '../../../models/databases/database/credentials';
import type { JobContext } from '../../job';
import { databaseAuthority } from '../../databases/database/certificate';
import { trustFilesBelow, trustTexts, trustVariables } from '../../databases/database/trust';

/** Where programs find the certificates of the authority of databases. */
const TRUST_DIRECTORY = '/platform/trust';

type PodDatabases = Pick<Workload, 'env' | 'documents' | 'reaches'>;

/**
 * The variables of a program as a pod gets them, and what it needs beside them.
 * @param variables as on this host, with those of attachments @param databases of the release
 * @throws DriverError `unsupported` where the operator has not said how pods reach databases
 */
export async function podDatabases(
  variables: Record<string, string>,
  databases: readonly AttachedDatabase[],
  ctx: Pick<JobContext, 'sql' | 'secrets' | 'config'>,
): Promise<PodDatabases> {
  if (databases.length === 0) return { env: variables, documents: [], reaches: [] };
  const { databaseAddressForPods: address } = ctx.config;
  const onHost = databases.filter(({ host }) => host == null);
  if (onHost.length > 0 && address === null)
    throw new DriverError(
      'unsupported',
      'Applications on this cluster cannot reach attached databases: the operator has not set ' +
        'DATABASE_ADDRESS_FOR_PODS and DATABASE_SOURCES_OF_PODS. Detach the database.',
    );
  const files = trustFilesBelow(TRUST_DIRECTORY);
  const texts = await trustTexts((await databaseAuthority(ctx)).certificate);
  const hosts = new Map(
    onHost.map(({ env_prefix, access }) => [env_prefix, endpointHost(ctx.config, { access, host: null })]),
  );
  return {
    env: overrideVariables(
      trustVariables(databases, files),
      address === null ? variables : withAddress(variables, hosts, address),
    ),
    documents: [
      { path: files.authority, text: texts.authority },
      { path: files.bundle, text: texts.bundle },
    ],
    reaches: address === null ? [] : reachesOf(onHost, address),
  };
}

/** @param hosts by the prefix of the variables: what they name on the host */
export function withAddress(
  variables: Record<string, string>,
  hosts: ReadonlyMap<string, string>,
  address: string,
): Record<string, string> {
  const changed = { ...variables };
  const inUrl = address.includes(':') ? `[${address}]` : address;
  for (const [prefix, host] of hosts) {
    if (variables[`${prefix}_HOST`] !== host) continue;
    changed[`${prefix}_HOST`] = address;
    const url = variables[`${prefix}_URL`];
    if (url !== undefined) changed[`${prefix}_URL`] = url.replace(`@${host}:`, () => `@${inUrl}:`);
  }
  return changed;
}

function reachesOf(databases: readonly AttachedDatabase[], address: string): PodDatabases['reaches'] {
  const ports = new Set(databases.map(({ port }) => port));
  return [...ports].sort((a, b) => a - b).map((port) => ({ address, port }));
}
