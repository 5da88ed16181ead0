// TLS contexts by host name. The certificate of each name is loaded once. Names with the same one share its context:
// it has 40 KiB, and strangers choose names below a wildcard.
import { createHash, X509Certificate } from 'node:crypto';
import { createSecureContext, type SecureContext } from 'node:tls';
import type { Certificate, IngressCallbacks } from './ingress';

export interface TlsContextCache {
  entries: Map<string, Entry>;
  /** Contexts in use, by a digest of their certificate and key. */
  byCertificate: Map<string, WeakRef<SecureContext>>;
  loadCertificate: IngressCallbacks['certificate'];
}

interface Entry {
  /** The result; undefined while it is loading. */
  found: SecureContext | null | undefined;
  loading: Promise<SecureContext | null>;
  /** The certificate is one that somebody else has signed. */
  hasAuthority: boolean;
  until: number;
}

/** Renewals call `forgetCertificate`; this limit covers a lost call. */
const FOUND_MS = 3_600_000;
const ABSENT_MS = 30_000;
/** After a failed look-up, or for an unusable certificate. The previous certificate stays in use. */
const FAILED_MS = 5_000;
const NAMES = 20_000;
/** Names with a certificate that are passed over for one without. */
const SPARED = 50;
const KEEP_EVERY_MS = 15_000;

export function tlsContextCache(loadCertificate: IngressCallbacks['certificate']): TlsContextCache {
  return { entries: new Map(), byCertificate: new Map(), loadCertificate };
}

/** The context of a host name; null where it has no usable certificate. Never throws. */
export function contextOf(store: TlsContextCache, host: string): Promise<SecureContext | null> {
  const known = store.entries.get(host);
  if (known !== undefined && (known.found === undefined || known.until > Date.now())) return known.loading;
  if (store.entries.size >= NAMES) dropOldest(store);
  const entry: Entry = { found: undefined, loading: Promise.resolve(null), hasAuthority: false, until: Infinity };
  entry.loading = loadContext(store, host, entry, known);
  store.entries.delete(host); // Move to the end: the first entry is the oldest
  store.entries.set(host, entry);
  return entry.loading;
}

/**
 * Keeps those of the platform's own names loaded: while the control plane is away nobody can look them up, and then
 * there is something to say at these names.
 */
export function keepContexts(store: TlsContextCache, hosts: readonly string[]): NodeJS.Timeout {
  const load = (): void => hosts.forEach((host) => void contextOf(store, host));
  load();
  return setInterval(load, KEEP_EVERY_MS).unref();
}

/** Whether a host name has a certificate; synchronous where that is known. */
export function hasCertificate(store: TlsContextCache, host: string): boolean | Promise<boolean> {
  const known = store.entries.get(host);
  if (known?.found !== undefined && known.until > Date.now()) return known.found !== null;
  return contextOf(store, host).then((context) => context !== null);
}

/** Whether the certificate in use, as far as it is loaded, is that of an authority. */
export function hasAuthority(store: TlsContextCache, host: string): boolean {
  return store.entries.get(host)?.hasAuthority ?? false;
}

/**
 * Reloads on next use; the previous certificate stays in use if that fails.
 * @param host `*.example.com`: all names one label below; null: all host names
 */
export function forgetContext(store: TlsContextCache, host: string | null): void {
  const below = host?.startsWith('*.') ? host.slice(1) : null;
  for (const [name, entry] of store.entries) {
    if (host !== null && name !== host && name.slice(name.indexOf('.')) !== below) continue;
    if (entry.found === undefined) store.entries.delete(name);
    else entry.until = 0;
  }
}

async function loadContext(
  store: TlsContextCache,
  host: string,
  entry: Entry,
  before: Entry | undefined,
): Promise<SecureContext | null> {
  try {
    const certificate = await store.loadCertificate(host);
    entry.found = certificate && sharedContext(store, certificate);
    entry.hasAuthority = certificate !== null && !isSelfSigned(certificate.chain);
    entry.until = Date.now() + (entry.found === null ? ABSENT_MS : FOUND_MS);
  } catch {
    entry.found = before?.found ?? null;
    entry.hasAuthority = before?.hasAuthority ?? false;
    entry.until = Date.now() + FAILED_MS;
  }
  return entry.found;
}

function sharedContext({ byCertificate }: TlsContextCache, { chain, key }: Certificate): SecureContext {
  const digest = createHash('sha256').update(chain).update(key).digest('base64');
  const known = byCertificate.get(digest)?.deref();
  if (known) return known;
  const context = createSecureContext({ cert: chain, key, minVersion: 'TLSv1.2' });
  if (byCertificate.size >= NAMES)
    for (const [other, reference] of byCertificate) if (!reference.deref()) byCertificate.delete(other);
  byCertificate.set(digest, new WeakRef(context));
  return context;
}

function isSelfSigned(chain: string): boolean {
  const leaf = new X509Certificate(chain);
  return leaf.checkIssued(leaf);
}

/** Names without a certificate go first: strangers choose those below a wildcard, and would push out all others. */
function dropOldest({ entries }: TlsContextCache): void {
  for (let spared = 0; ; spared += 1) {
    const [name, entry] = entries.entries().next().value as [string, Entry];
    entries.delete(name);
    if (!entry.found || spared >= SPARED) return;
    entries.set(name, entry);
  }
}
