// Kubeconfig, as kubectl reads it. What is not supported is refused: to leave out a proxy or a user to act as would be
// to reach another server, or to act as somebody else.
import { createRequire } from 'node:module';
import path from 'node:path';
import type * as OfYaml from 'yaml';
import { memoize } from '../../../core/memoize';
import { DriverError } from '../../../core/driver';
import type { ClusterAccess, ExecPlugin, Pem, UserAccess } from './access';

/** 70 modules, 20 ms, which only a platform with a cluster needs. */
const yaml = memoize(() => createRequire(__filename)('yaml') as typeof OfYaml);

type Section = Record<string, unknown>;

/** An entry of a list, and the folder that its paths start from. */
interface Entry {
  name: string;
  content: Section;
  folder: string;
}

interface Merged {
  clusters: Entry[];
  users: Entry[];
  contexts: Entry[];
  current: string | null;
}

/** @throws DriverError `invalid` or `unsupported` */
export function parseKubeconfigs(
  files: readonly { file: string; text: string }[],
  contextName?: string,
): ClusterAccess {
  const merged = merge(files);
  const wanted = contextName ?? merged.current;
  if (!wanted) throw invalid('has no `current-context`, and none was chosen');
  const context = find(merged.contexts, 'context', wanted).content;
  const cluster = find(merged.clusters, 'cluster', text(context, 'cluster') ?? missing('context', wanted, 'cluster'));
  const user = find(merged.users, 'user', text(context, 'user') ?? missing('context', wanted, 'user'));
  return {
    ...clusterAccess(cluster),
    namespace: text(context, 'namespace') ?? 'default',
    user: userAccess(user),
  };
}

function merge(files: readonly { file: string; text: string }[]): Merged {
  const merged: Merged = { clusters: [], users: [], contexts: [], current: null };
  for (const { file, text: content } of files) {
    const config = parseDocument(content);
    const folder = path.dirname(path.resolve(file));
    merged.clusters.push(...entriesOf(config, 'clusters', 'cluster', folder));
    merged.users.push(...entriesOf(config, 'users', 'user', folder));
    merged.contexts.push(...entriesOf(config, 'contexts', 'context', folder));
    merged.current ??= text(config, 'current-context') || null;
  }
  return merged;
}

function parseDocument(content: string): Section {
  let value: unknown;
  try {
    value = yaml().parse(content);
  } catch {
    // The text of the error would quote the line, which may be that of a token.
    throw invalid('is not valid YAML');
  }
  if (!isSection(value)) throw invalid('has no fields');
  if (value.kind !== undefined && value.kind !== 'Config') throw invalid('is of another kind than `Config`');
  return value;
}

function entriesOf(config: Section, list: string, field: string, folder: string): Entry[] {
  const entries = config[list] ?? [];
  if (!Array.isArray(entries)) throw invalid(`has \`${list}\` that are not a list`);
  return entries.filter(isSection).flatMap((entry) => {
    const name = text(entry, 'name');
    const content = entry[field] ?? {};
    return name !== null && isSection(content) ? [{ name, content, folder }] : [];
  });
}

function find(entries: readonly Entry[], kind: string, name: string): Entry {
  const entry = entries.find((one) => one.name === name);
  if (!entry) throw invalid(`has no ${kind} \`${name}\``);
  return entry;
}

function clusterAccess({ name, content, folder }: Entry): Omit<ClusterAccess, 'namespace' | 'user'> {
  if (text(content, 'proxy-url')) throw unsupported(`cluster \`${name}\``, '`proxy-url`', 'Reach the server directly.');
  const server = parseServer(name, text(content, 'server') ?? missing('cluster', name, 'server'));
  const authority = pem(content, 'certificate-authority', folder);
  const verifiesServer = content['insecure-skip-tls-verify'] !== true;
  if (authority && !verifiesServer)
    throw invalid(`has both an authority and \`insecure-skip-tls-verify\` for the cluster \`${name}\``);
  return { server, authority, serverName: text(content, 'tls-server-name'), verifiesServer };
}

function parseServer(name: string, server: string): URL {
  if (!URL.canParse(server)) throw invalid(`has a \`server\` of the cluster \`${name}\` that is not an address`);
  const url = new URL(server);
  if (url.protocol !== 'https:') throw invalid(`has a \`server\` of the cluster \`${name}\` without https`);
  if (url.username || url.password || url.search || url.hash)
    throw invalid(`has a \`server\` of the cluster \`${name}\` with more than host, port and path`);
  return url;
}

/** What had a provider in Kubernetes itself until 1.26, and what came after it. */
const SUCCESSORS: Record<string, string> = {
  gcp: 'Run `gcloud container clusters get-credentials` again, which writes an exec plugin.',
  azure: 'Run `kubelogin convert-kubeconfig`, which writes an exec plugin.',
  oidc: 'Use an exec plugin, such as `kubectl oidc-login`, or a token.',
};

function userAccess({ name, content, folder }: Entry): UserAccess {
  const user = `user \`${name}\``;
  const provider = content['auth-provider'];
  if (isSection(provider)) {
    const called = text(provider, 'name') ?? '';
    throw unsupported(user, `\`auth-provider\` (${called})`, SUCCESSORS[called] ?? 'Use an exec plugin or a token.');
  }
  if (text(content, 'username') !== null)
    throw unsupported(user, 'a password', 'Kubernetes has none since 1.19: use a certificate or a token.');
  const certificate = pem(content, 'client-certificate', folder);
  const key = pem(content, 'client-key', folder);
  if (Boolean(certificate) !== Boolean(key))
    throw invalid(`has a certificate without its key, or a key alone, for the ${user}`);
  const file = text(content, 'tokenFile');
  return {
    client: certificate && key ? { certificate, key } : null,
    token: text(content, 'token'),
    tokenFile: file === null ? null : path.resolve(folder, file),
    exec: execPlugin(user, content.exec, folder),
    impersonation: impersonation(user, content),
  };
}

const EXEC_VERSIONS = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1'];

function execPlugin(user: string, content: unknown, folder: string): ExecPlugin | null {
  if (content === undefined || content === null) return null;
  if (!isSection(content)) throw invalid(`has an \`exec\` of the ${user} without fields`);
  const apiVersion = text(content, 'apiVersion') ?? '';
  if (!EXEC_VERSIONS.includes(apiVersion))
    throw unsupported(user, `an exec plugin of the version \`${apiVersion}\``, 'Plugins of v1 and v1beta1 work.');
  if (content.interactiveMode === 'Always')
    throw unsupported(user, 'an exec plugin that asks questions', 'Choose one that needs no terminal.');
  const command = text(content, 'command') ?? missing('exec plugin of the', user, 'command');
  const env = Array.isArray(content.env) ? content.env.filter(isSection) : [];
  return {
    ...{ apiVersion, installHint: text(content, 'installHint') },
    // A name is looked up in PATH; a path starts from the file that names it.
    command: command.includes('/') ? path.resolve(folder, command) : command,
    args: Array.isArray(content.args) ? content.args.map(String) : [],
    env: Object.fromEntries(env.map((one) => [text(one, 'name') ?? '', text(one, 'value') ?? ''])),
    providesClusterInfo: content.provideClusterInfo === true,
  };
}

function impersonation(user: string, content: Section): Record<string, string | string[]> {
  if (content['as-user-extra'] !== undefined) throw unsupported(user, '`as-user-extra`', 'Leave it out.');
  const groups = content['as-groups'];
  const [as, uid] = [text(content, 'as'), text(content, 'as-uid')];
  return {
    ...(as === null ? {} : { 'Impersonate-User': as }),
    ...(uid === null ? {} : { 'Impersonate-Uid': uid }),
    ...(Array.isArray(groups) && groups.length ? { 'Impersonate-Group': groups.map(String) } : {}),
  };
}

/** `NAME-data` in base64 goes before the path in `NAME`. */
function pem(content: Section, name: string, folder: string): Pem | null {
  const data = text(content, `${name}-data`);
  const file = text(content, name);
  if (data === null) return file === null ? null : { file: path.resolve(folder, file) };
  const decoded = Buffer.from(data, 'base64').toString('latin1');
  if (!decoded.includes('-----BEGIN ')) throw invalid(`has \`${name}-data\` that are not PEM in base64`);
  return { text: decoded };
}

function isSection(value: unknown): value is Section {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Null also for the empty text that tools write for what is unset. */
function text(section: Section, field: string): string | null {
  const value = section[field];
  return typeof value === 'string' && value !== '' ? value : null;
}

function missing(kind: string, name: string, field: string): never {
  throw invalid(`has no \`${field}\` for the ${kind} \`${name}\``);
}

const invalid = (what: string): DriverError => new DriverError('invalid', `The kubeconfig ${what}.`);

function unsupported(whose: string, what: string, advice: string): DriverError {
  return new DriverError(
    'unsupported',
    `The ${whose} of the kubeconfig uses ${what}, which is not supported. ${advice}`,
  );
}
