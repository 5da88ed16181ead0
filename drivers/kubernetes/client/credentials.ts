// Credentials of one request. Files are read again after a while, and all of it after a 401.
import { readFile } from 'node:fs/promises';
import { DriverError, untilAborted, type DriverContext } from '../../../core/driver';
import type { ClusterAccess, Pem } from './access';
import { runExecPlugin, type PluginCredential } from './exec_plugin';

/** For `https.request`. */
export interface RequestCredentials {
  headers: Record<string, string | string[]>;
  tls: { ca?: string; cert?: string; key?: string; servername?: string; rejectUnauthorized: boolean };
}

interface Credentials {
  /** @throws DriverError `unauthorized`, `unsupported`, `transient` */
  current(ctx: DriverContext): Promise<RequestCredentials>;
  /** After a 401. */
  forget(): void;
}

/** Tokens of service accounts are replaced long before they expire; client-go reads them each minute. */
const FILE_MS = 30_000;
/** A credential that expires on its way would be a 401. */
const EXPIRES_EARLIER_MS = 10_000;

export function openCredentials(access: ClusterAccess): Credentials {
  const files = fileCache();
  const plugin = pluginCache(access, files.read);
  return {
    async current(ctx) {
      const { user } = access;
      const granted = plugin && user.token === null ? await plugin.current(ctx) : null;
      const token = user.tokenFile ? (await files.read({ file: user.tokenFile })).trim() : user.token;
      const client = granted?.client ?? (await clientOf(access, files.read));
      const bearer = token ?? granted?.token;
      return {
        headers: { ...user.impersonation, ...(bearer ? { Authorization: `Bearer ${headerValue(bearer)}` } : {}) },
        tls: { ...(await serverTls(access, files.read)), ...(client && { cert: client.certificate, key: client.key }) },
      };
    },
    forget() {
      files.forget();
      plugin?.forget();
    },
  };
}

type Read = (pem: Pem) => Promise<string>;

async function clientOf({ user }: ClusterAccess, read: Read): Promise<{ certificate: string; key: string } | null> {
  if (!user.client) return null;
  return { certificate: await read(user.client.certificate), key: await read(user.client.key) };
}

async function serverTls(
  { authority, serverName, verifiesServer }: ClusterAccess,
  read: Read,
): Promise<RequestCredentials['tls']> {
  return {
    rejectUnauthorized: verifiesServer,
    ...(authority ? { ca: await read(authority) } : {}),
    ...(serverName === null ? {} : { servername: serverName }),
  };
}

/** Node would answer a line break in it with an error that quotes it. */
function headerValue(token: string): string {
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new DriverError('unauthorized', 'The token for the cluster has characters that no token has.');
}

function fileCache(): { read: Read; forget(): void } {
  const kept = new Map<string, { text: string; readAt: number }>();
  return {
    async read(pem) {
      if ('text' in pem) return pem.text;
      const known = kept.get(pem.file);
      if (known && performance.now() - known.readAt < FILE_MS) return known.text;
      const text = await readCredential(pem.file);
      kept.set(pem.file, { text, readAt: performance.now() });
      return text;
    },
    forget: () => kept.clear(),
  };
}

function readCredential(file: string): Promise<string> {
  return readFile(file, 'latin1').catch((error: NodeJS.ErrnoException) => {
    const message = `A file with credentials for the cluster cannot be read (${error.code}).`;
    throw Object.assign(new DriverError('unauthorized', message), { cause: error });
  });
}

interface PluginCache {
  current(ctx: DriverContext): Promise<PluginCredential>;
  forget(): void;
}

/** One program at a time, for all who wait; its credential until it expires. */
function pluginCache(access: ClusterAccess, read: Read): PluginCache | null {
  const { exec } = access.user;
  if (!exec) return null;
  let kept: PluginCredential | null = null;
  let running: Promise<PluginCredential> | null = null;
  const run = async (): Promise<PluginCredential> => {
    const authority = access.authority && (await read(access.authority));
    const cluster = { ...access, server: access.server.href.replace(/\/$/, ''), authority };
    kept = await runExecPlugin(exec, cluster);
    return kept;
  };
  return {
    async current(ctx) {
      if (kept && (kept.expiresAt === null || Date.now() < kept.expiresAt - EXPIRES_EARLIER_MS)) return kept;
      running ??= run().finally(() => (running = null));
      return untilAborted(ctx.signal, running);
    },
    forget: () => (kept = null),
  };
}
