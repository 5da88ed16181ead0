// Access to a cluster, from a kubeconfig or from what a pod is given.
import { readFile } from 'node:fs/promises';
import { DriverError } from '../../../core/driver';
import type { ClusterAccess } from './access';
import { parseKubeconfigs } from './kubeconfig';

const KUBECONFIG_BYTES_MAX = 1024 * 1024;
const SERVICE_ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * @param kubeconfig path, or several with colons between; the first that names a thing wins, as for kubectl
 * @param context instead of the current one
 * @throws DriverError `invalid` or `unsupported`, which says what in it
 */
export async function loadKubeconfig(kubeconfig: string, context?: string): Promise<ClusterAccess> {
  const files = kubeconfig.split(':').filter(Boolean);
  const texts = await Promise.all(files.map(async (file) => ({ file, text: await readKubeconfig(file) })));
  return parseKubeconfigs(texts, context);
}

async function readKubeconfig(file: string): Promise<string> {
  const content = await readFile(file).catch((error: NodeJS.ErrnoException) => {
    throw Object.assign(new DriverError('invalid', `The kubeconfig cannot be read (${error.code}).`), { cause: error });
  });
  if (content.length > KUBECONFIG_BYTES_MAX) throw new DriverError('invalid', 'The kubeconfig is larger than 1 MiB.');
  return content.toString();
}

/**
 * Access of a pod, by its service account.
 * @returns null outside of a pod
 */
export function inClusterAccess(
  environment: Readonly<Record<string, string | undefined>>,
  directory = SERVICE_ACCOUNT,
): ClusterAccess | null {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = '443' } = environment;
  if (!host) return null;
  const server = new URL(`https://${host.includes(':') ? `[${host}]` : host}:${port}`);
  return {
    ...{ server, authority: { file: `${directory}/ca.crt` }, serverName: null, verifiesServer: true },
    namespace: 'default',
    user: { client: null, token: null, tokenFile: `${directory}/token`, exec: null, impersonation: {} },
  };
}
