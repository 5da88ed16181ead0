// Access to a remote: the checked address, the pinned connection settings of git, and the credential, which is passed
// in the environment of that one process or in a private file.
import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import path from 'node:path';
import { isPidTaken } from '../../core/process/processes';
import type { DriverContext } from '../../core/driver';
import { SourceError, type GitRemote } from '../source';
import { resolveEndpoint, isSameOrigin, type AddressRules, type RemoteEndpoint } from './address';
import { GitFailed, type Settings } from './command';
import { toSourceError } from './failure';
import { requestPinned } from './web_request';

/** A checked remote: git options, and its endpoint. */
export interface RemoteAccess {
  endpoint: RemoteEndpoint;
  config: Settings;
  env: Record<string, string>;
  /** For ssh remotes, after a connection: the known_hosts line with the key of the host. */
  hostKey?: () => Promise<string | null>;
  /** For ssh remotes: ssh options before the host. */
  sshOptions?: string[];
}

export interface RemoteOptions extends AddressRules {
  /** Parent of known_hosts and temporary directories. */
  directory: string;
}

const redirectsMax = 3;

/**
 * Runs the work with the remote. A redirect is followed as a new address: it is checked again, and gets no credential
 * on another host.
 * @throws SourceError
 */
export async function withRemote<T>(
  remote: GitRemote,
  options: RemoteOptions,
  ctx: DriverContext,
  work: (access: RemoteAccess) => Promise<T>,
): Promise<T> {
  let at = remote;
  let endpoint = await resolveEndpoint(at.address, options, ctx);
  for (let redirects = 0; ; redirects += 1) {
    try {
      return await attempt(at, endpoint, options, work);
    } catch (error) {
      if (!isRedirect(error) || redirects === redirectsMax)
        throw toSourceError(error, endpoint, at.host_key !== undefined);
      const next = await resolveEndpoint(await readRedirect(endpoint, options, ctx), options, ctx);
      at = { address: next.address, credential: isSameOrigin(endpoint, next) ? at.credential : undefined };
      endpoint = next;
    }
  }
}

/**
 * Runs the work with a temporary directory, and removes it. `sweepTemporaryDirectories` removes those of dead
 * processes.
 */
export async function withTemporaryDirectory<T>(directory: string, work: (folder: string) => Promise<T>): Promise<T> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const folder = await mkdtemp(path.join(directory, `scratch-${process.pid}-`));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export async function sweepTemporaryDirectories(directory: string): Promise<void> {
  const names = await readdir(directory).catch(() => []);
  const dead = names.filter((name) => name.startsWith('scratch-') && !isPidTaken(Number(name.split('-')[1])));
  await Promise.all(dead.map((name) => rm(path.join(directory, name), { recursive: true, force: true })));
}

function attempt<T>(
  remote: GitRemote,
  endpoint: RemoteEndpoint,
  options: RemoteOptions,
  work: (access: RemoteAccess) => Promise<T>,
): Promise<T> {
  const allowed: Settings = [[`protocol.${endpoint.scheme}.allow`, 'always']];
  if (endpoint.scheme === 'ssh')
    return overSsh(remote, endpoint, options, (ssh) => work({ endpoint, config: allowed, ...ssh }));
  if (endpoint.scheme === 'file') return overFile(options, (env) => work({ endpoint, config: allowed, env }));
  return work({
    endpoint,
    config: [...allowed, ...pinnedAddresses(endpoint), ...authorization(remote, endpoint)],
    env: {},
  });
}

/** @see https://git-scm.com/docs/git-config#Documentation/git-config.txt-httpcurloptResolve */
function pinnedAddresses({ host, port, ips }: RemoteEndpoint): Settings {
  return isIP(host)
    ? []
    : [['http.curloptResolve', `${host}:${port}:${ips.map((ip) => (isIP(ip) === 6 ? `[${ip}]` : ip)).join(',')}`]];
}

function authorization({ credential }: GitRemote, endpoint: RemoteEndpoint): Settings {
  if (credential?.kind !== 'basic') return [];
  const { origin } = new URL(endpoint.address);
  return [
    [
      `http.${origin}/.extraHeader`,
      `Authorization: Basic ${Buffer.from(`${credential.username}:${credential.password}`).toString('base64')}`,
    ],
  ];
}

function overSsh<T>(
  remote: GitRemote,
  endpoint: RemoteEndpoint,
  { directory }: RemoteOptions,
  work: (ssh: Required<Pick<RemoteAccess, 'env' | 'hostKey' | 'sshOptions'>>) => Promise<T>,
): Promise<T> {
  return withTemporaryDirectory(directory, async (folder) => {
    const key = path.join(folder, 'key');
    const { credential, host_key } = remote;
    if (credential?.kind === 'ssh_key') await writeFile(key, `${credential.private_key.trimEnd()}\n`, { mode: 0o600 });
    const knownHosts = await ensureKnownHosts(remote, folder, directory);
    const identity = credential?.kind === 'ssh_key' ? key : 'none';
    const sshOptions = sshOptionsOf(endpoint, knownHosts, identity, Boolean(host_key));
    const env = { GIT_SSH_VARIANT: 'ssh', GIT_SSH_COMMAND: ['ssh', ...sshOptions.map(sshQuoted)].join(' ') };
    return work({ env, sshOptions, hostKey: () => readHostKey(endpoint, knownHosts) });
  });
}

/**
 * The file of accepted host keys: the key pinned for the repository. Until one is pinned, the first key presented by
 * the host is stored beside the deploy key, so that a new deploy key starts over; without a deploy key, it is shared by
 * all.
 */
async function ensureKnownHosts(
  { credential, host_key }: GitRemote,
  folder: string,
  directory: string,
): Promise<string> {
  const key = credential?.kind === 'ssh_key' && host_key !== undefined ? credential.private_key : null;
  const suffix = key === null ? '' : `-${createHash('sha256').update(key).digest('hex').slice(0, 32)}`;
  const first = path.join(directory, `known_hosts${suffix}`);
  if (!host_key) return first;
  if (key !== null) await rm(first, { force: true });
  const pinned = path.join(folder, 'known_hosts');
  await writeFile(pinned, `${host_key}\n`, { mode: 0o600 });
  return pinned;
}

async function readHostKey(endpoint: RemoteEndpoint, knownHosts: string): Promise<string | null> {
  const lines = (await readFile(knownHosts, 'utf8').catch(() => '')).split('\n');
  const alias = hostAlias(endpoint);
  return lines.find((line) => line.split(' ')[0] === alias)?.trim() ?? null;
}

/** Host name in known_hosts. */
function hostAlias({ host, port }: RemoteEndpoint): string {
  return port === 22 ? host : `[${host}]:${port}`;
}

// HostName is the checked address; the key of the host is stored under its name.
function sshOptionsOf(endpoint: RemoteEndpoint, knownHosts: string, key: string, isPinned: boolean): string[] {
  const settings = {
    HostName: endpoint.ips[0],
    HostKeyAlias: hostAlias(endpoint),
    HashKnownHosts: 'no',
    UserKnownHostsFile: `"${knownHosts}"`,
    GlobalKnownHostsFile: '/dev/null',
    StrictHostKeyChecking: isPinned ? 'yes' : 'accept-new',
    CheckHostIP: 'no',
    IdentityFile: key === 'none' ? key : `"${key}"`,
    IdentitiesOnly: 'yes',
    IdentityAgent: 'none',
    BatchMode: 'yes',
    PreferredAuthentications: 'publickey',
    ForwardAgent: 'no',
    ForwardX11: 'no',
    ClearAllForwardings: 'yes',
    PermitLocalCommand: 'no',
    ProxyCommand: 'none',
    ConnectTimeout: '15',
    ServerAliveInterval: '15',
  };
  return ['-F', 'none', ...Object.entries(settings).flatMap(([name, value]) => ['-o', `${name}=${value}`])];
}

/** Quotes a text for a shell. */
export function sshQuoted(text: string): string {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

// If the repository belongs to another user, git requires `safe.directory` in the user's configuration. ALLOW_LOCAL_GIT
// is the operator's permission.
async function overFile<T>(
  { directory }: RemoteOptions,
  work: (env: Record<string, string>) => Promise<T>,
): Promise<T> {
  return withTemporaryDirectory(directory, async (folder) => {
    const file = path.join(folder, 'config');
    await writeFile(file, '[safe]\n\tdirectory = *\n');
    await chmod(file, 0o600);
    return work({ GIT_CONFIG_GLOBAL: file });
  });
}

function isRedirect(error: unknown): boolean {
  return error instanceof GitFailed && /returned error: 30[12378]/.test(error.stderr);
}

async function readRedirect(endpoint: RemoteEndpoint, { outbound }: AddressRules, ctx: DriverContext): Promise<string> {
  const wanted = 'info/refs?service=git-upload-pack';
  const from = new URL(`${endpoint.address.replace(/\/$/, '')}/${wanted}`);
  const { response } = await requestPinned(outbound, { ...endpoint, address: from.href }, {}, ctx);
  response.destroy();
  const { location = null } = response.headers;
  const to = location === null ? null : new URL(location, from).href;
  if (to === null || !to.endsWith(`/${wanted}`))
    throw new SourceError(
      'no_repository',
      `The host ${endpoint.host} redirects to an address that is not a Git repository. Check the address of the ` +
        'repository.',
    );
  return to.slice(0, -wanted.length - 1);
}
