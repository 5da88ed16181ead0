// Certificates by host name, as TLS contexts. Each name is asked for once.
import { createSecureContext, type SecureContext } from 'node:tls';
import type { IngressCallbacks } from './ingress';

export interface TlsContextCache {
  entries: Map<string, Entry>;
  loadCertificate: IngressCallbacks['certificate'];
}

interface Entry {
  /** What was found, undefined while it is looked up. */
  found: SecureContext | null | undefined;
  loading: Promise<SecureContext | null>;
  until: number;
}

/** A renewed one is told by `forgetCertificate`; this is for when that was lost. */
const FOUND_MS = 3_600_000;
const ABSENT_MS = 30_000;
/** After a failure to look, or for a certificate that cannot be used. What was found before serves on. */
const FAILED_MS = 5_000;
const NAMES = 20_000;

export function tlsContextCache(ask: IngressCallbacks['certificate']): TlsContextCache {
  return { entries: new Map(), loadCertificate: ask };
}

/** The context of a name; null where it has no certificate that can be used. Never throws. */
export function contextOf(store: TlsContextCache, host: string): Promise<SecureContext | null> {
  const known = store.entries.get(host);
  if (known !== undefined && (known.found === undefined || known.until > Date.now())) return known.loading;
  if (store.entries.size >= NAMES) dropOldest(store);
  const entry: Entry = { found: undefined, loading: Promise.resolve(null), until: Infinity };
  entry.loading = loadContext(store, host, entry, known?.found ?? null);
  store.entries.delete(host); // to the end: the first is the oldest
  store.entries.set(host, entry);
  return entry.loading;
}

/** Whether a name has a certificate, at once where that is known. */
export function hasCertificate(store: TlsContextCache, host: string): boolean | Promise<boolean> {
  const known = store.entries.get(host);
  if (known?.found !== undefined && known.until > Date.now()) return known.found !== null;
  return contextOf(store, host).then((context) => context !== null);
}

/** Asks again when it is next needed; what was found serves on where that fails. @param host null: all of them */
export function forgetContext(store: TlsContextCache, host: string | null): void {
  for (const [name, entry] of store.entries) {
    if (host !== null && name !== host) continue;
    if (entry.found === undefined) store.entries.delete(name);
    else entry.until = 0;
  }
}

async function loadContext(
  store: TlsContextCache,
  host: string,
  entry: Entry,
  before: SecureContext | null,
): Promise<SecureContext | null> {
  try {
    const certificate = await store.loadCertificate(host);
    entry.found =
      certificate && createSecureContext({ cert: certificate.chain, key: certificate.key, minVersion: 'TLSv1.2' });
    entry.until = Date.now() + (entry.found === null ? ABSENT_MS : FOUND_MS);
  } catch {
    entry.found = before;
    entry.until = Date.now() + FAILED_MS;
  }
  return entry.found;
}

function dropOldest(store: TlsContextCache): void {
  const oldest = store.entries.keys().next();
  if (!oldest.done) store.entries.delete(oldest.value);
}
