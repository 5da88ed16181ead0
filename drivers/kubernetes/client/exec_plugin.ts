// Credentials by a program, as `aws eks get-token` or `gke-gcloud-auth-plugin` print them.
import { execFile } from 'node:child_process';
import { DriverError } from '../../../core/driver';
import { commandEnvironment } from '../../../core/process/command';
import type { ExecPlugin } from './access';

export interface PluginCredential {
  token: string | null;
  client: { certificate: string; key: string } | null;
  /** ms since the epoch; null: as long as the server takes it. */
  expiresAt: number | null;
}

/** For KUBERNETES_EXEC_INFO. */
interface ClusterInfo {
  server: string;
  authority: string | null;
  serverName: string | null;
  verifiesServer: boolean;
}

const OUTPUT_BYTES_MAX = 1024 * 1024;
const PLUGIN_MS = 60_000;
/** What plugins of providers read. The rest of the environment has secrets of the platform. */
const PASSED = /^(HOME|USER|LOGNAME|LANG|TMPDIR|(HTTPS?|NO)_PROXY|SSL_CERT_\w+|XDG_\w+)$/i;
const PASSED_OF_PROVIDERS = /^(AWS|GOOGLE|CLOUDSDK|AZURE|AAD|OCI|DIGITALOCEAN|KUBELOGIN)_\w+$/;

/**
 * For a minute at most.
 * @throws DriverError `unsupported` where the program is missing, `unauthorized` where it fails
 */
export async function runExecPlugin(plugin: ExecPlugin, cluster: ClusterInfo): Promise<PluginCredential> {
  const output = await runProgram(plugin, { ...environment(), ...plugin.env, ...execInfo(plugin, cluster) });
  return parseCredential(plugin, output);
}

function environment(): NodeJS.ProcessEnv {
  const passed = Object.entries(process.env).filter(([name]) => PASSED.test(name) || PASSED_OF_PROVIDERS.test(name));
  return { ...Object.fromEntries(passed), ...commandEnvironment };
}

function execInfo({ apiVersion, providesClusterInfo }: ExecPlugin, cluster: ClusterInfo): NodeJS.ProcessEnv {
  const info = {
    server: cluster.server,
    ...(cluster.authority ? { 'certificate-authority-data': Buffer.from(cluster.authority).toString('base64') } : {}),
    ...(cluster.serverName ? { 'tls-server-name': cluster.serverName } : {}),
    ...(cluster.verifiesServer ? {} : { 'insecure-skip-tls-verify': true }),
  };
  const spec = { interactive: false, ...(providesClusterInfo ? { cluster: info } : {}) };
  return { KUBERNETES_EXEC_INFO: JSON.stringify({ apiVersion, kind: 'ExecCredential', spec }) };
}

/** Its standard error is not passed on: it may quote what it was given. */
function runProgram(plugin: ExecPlugin, env: NodeJS.ProcessEnv): Promise<string> {
  const options = {
    ...{ env, timeout: PLUGIN_MS, maxBuffer: OUTPUT_BYTES_MAX },
    killSignal: 'SIGKILL' as const,
  };
  return new Promise((resolve, reject) => {
    const child = execFile(plugin.command, plugin.args, options, (error, stdout) =>
      error ? reject(pluginError(plugin, error)) : resolve(stdout),
    );
    child.stdin?.end();
  });
}

function pluginError(plugin: ExecPlugin, error: Error): DriverError {
  const name = nameOf(plugin);
  const { code, killed } = error as Error & { code?: string | number; killed?: boolean };
  if (code === 'ENOENT' || code === 'EACCES') {
    const hint = plugin.installHint ? ` ${plugin.installHint.trim().slice(0, 500).replace(/\.?$/, '.')}` : '';
    return new DriverError('unsupported', `The credential plugin ${name} is not installed on this host.${hint}`);
  }
  if (killed) return new DriverError('transient', `The credential plugin ${name} did not finish in time.`);
  return new DriverError(
    'unauthorized',
    `The credential plugin ${name} failed with code ${code}. Run it by hand to see why.`,
  );
}

function parseCredential(plugin: ExecPlugin, output: string): PluginCredential {
  const { apiVersion, status } = parsed(output);
  const { token, clientCertificateData: certificate, clientKeyData: key, expirationTimestamp } = status ?? {};
  const client = typeof certificate === 'string' && typeof key === 'string' ? { certificate, key } : null;
  if (apiVersion !== plugin.apiVersion || (typeof token !== 'string' && !client))
    throw new DriverError('unauthorized', `The credential plugin ${nameOf(plugin)} printed no credential.`);
  const expiresAt = Date.parse(String(expirationTimestamp));
  return {
    token: typeof token === 'string' ? token : null,
    ...{ client, expiresAt: Number.isNaN(expiresAt) ? null : expiresAt },
  };
}

function parsed(output: string): { apiVersion?: unknown; status?: Record<string, unknown> } {
  try {
    return (JSON.parse(output) as object | null) ?? {};
  } catch {
    return {};
  }
}

/** Without its folder: messages name no path of the host. */
const nameOf = ({ command }: ExecPlugin): string => `\`${command.replace(/^.*\//, '')}\``;
