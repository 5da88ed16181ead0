// The LFS server of a repository, and the authorisation of requests: at the address that Git LFS derives from the
// repository, or in `.lfsconfig`.
// @see https://github.com/git-lfs/git-lfs/blob/main/docs/api/server-discovery.md
import type { DriverContext } from '../../../core/driver';
import { SourceError, type GitRemote } from '../../source';
import { isSameOrigin, resolveWebEndpoint, type AddressRules, type RemoteEndpoint } from '../address';
import { GitFailed, ssh } from '../command';
import { sshQuoted, type RemoteAccess } from '../remote';

export interface LfsServer {
  /** Of the API, without a trailing slash. */
  endpoint: RemoteEndpoint;
  headers: Record<string, string>;
  rules: AddressRules;
  /** Authorisation for an address named by the server, where it provides no headers. */
  authorizationFor(endpoint: RemoteEndpoint): Record<string, string>;
}

interface Found {
  href: string;
  headers?: Record<string, string>;
}

/** @param configured `lfs.url` of `.lfsconfig` @throws SourceError, GitFailed */
export async function findLfsServer(
  remote: GitRemote,
  access: RemoteAccess,
  configured: string | null,
  rules: AddressRules,
  ctx: DriverContext,
): Promise<LfsServer> {
  const { endpoint: home } = access;
  const found =
    configured !== null
      ? { href: configured }
      : home.scheme === 'ssh'
        ? await authenticateOverSsh(access, ctx)
        : { href: derivedAddress(home) };
  const endpoint = await resolveWebEndpoint(found.href.replace(/\/+$/, ''), rules, ctx);
  // The credential is for the host of the repository only.
  const authorizationFor = (to: RemoteEndpoint): Record<string, string> =>
    isSameOrigin(home, to) ? basicAuthorization(remote) : {};
  return { endpoint, rules, authorizationFor, headers: { ...authorizationFor(endpoint), ...found.headers } };
}

function derivedAddress({ scheme, address, host }: RemoteEndpoint): string {
  if (scheme === 'file')
    throw new SourceError(
      'refused',
      'The repository has large files (Git LFS), which can only be read over https or ssh.',
    );
  const url = new URL(address);
  const repository = url.pathname.replace(/\/+$/, '').replace(/(\.git)?$/, '.git');
  if (url.search) throw new SourceError('refused', `The address of the repository at ${host} has a query.`);
  return `${url.origin}${repository}/info/lfs`;
}

function basicAuthorization({ credential }: GitRemote): Record<string, string> {
  if (credential?.kind !== 'basic') return {};
  const pair = Buffer.from(`${credential.username}:${credential.password}`).toString('base64');
  return { Authorization: `Basic ${pair}` };
}

/** With the key, the host provides an address, and headers that are valid for some minutes. */
async function authenticateOverSsh(access: RemoteAccess, ctx: DriverContext): Promise<Found> {
  const { user, host, port, repository } = sshPartsOf(access.endpoint);
  const command = `git-lfs-authenticate ${sshQuoted(repository)} download`;
  const args = [...(access.sshOptions ?? []), '-p', String(port), '--', `${user}@${host}`, command];
  const text = await ssh(args, ctx).catch((error: unknown) => {
    throw error instanceof GitFailed && UNKNOWN_COMMAND.test(error.stderr) ? withoutLfs(host) : error;
  });
  const answer = parseAnswer(text);
  const headers = headersOf(answer?.header);
  if (typeof answer?.href === 'string' && answer.href !== '') return { href: answer.href, headers };
  if (answer)
    return { href: derivedAddress({ ...access.endpoint, address: `https://${host}/${repository}` }), headers };
  throw withoutLfs(host);
}

/** Responses of hosts to an unknown command. */
const UNKNOWN_COMMAND =
  /exec request failed|not found|not recogni[sz]ed|unrecogni[sz]ed|unknown|invalid command|disallowed/i;

function withoutLfs(host: string): SourceError {
  return new SourceError(
    'refused',
    `The repository has large files (Git LFS), and the host ${host} does not give them to a deploy key. Connect it ` +
      'with a token over https instead.',
  );
}

/** `git@host:path` or `ssh://git@host:port/path`. */
function sshPartsOf({ address, host, port }: RemoteEndpoint): {
  user: string;
  host: string;
  port: number;
  repository: string;
} {
  if (/^ssh:\/\//i.test(address)) {
    const { username, pathname } = new URL(address);
    return { user: username || 'git', host, port, repository: decodeURIComponent(pathname).replace(/^\//, '') };
  }
  const at = address.indexOf(':');
  return { user: address.slice(0, address.indexOf('@')), host, port, repository: address.slice(at + 1) };
}

interface SshAnswer {
  href?: unknown;
  header?: unknown;
}

function parseAnswer(text: string): SshAnswer | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' ? value : null;
  } catch {
    return null;
  }
}

const OWN_HEADERS = /^(host|connection|content-length|transfer-encoding|upgrade|expect)$/i;

/** Sanitises headers from a server: only valid ones, and none that control the connection. */
export function headersOf(value: unknown): Record<string, string> {
  const entries = Object.entries((value ?? {}) as Record<string, unknown>);
  return Object.fromEntries(
    entries.filter((entry): entry is [string, string] => {
      const [name, text] = entry;
      const isPlain = typeof text === 'string' && !/[^\t\x20-\x7e]/.test(text);
      return isPlain && /^[\w-]{1,100}$/.test(name) && !OWN_HEADERS.test(name);
    }),
  );
}
