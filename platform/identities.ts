// Identities and accesses, cached for at most two seconds and forgotten at once after a NOTIFY:
// a revoked key stops here immediately, and within two seconds on a replica that missed the message.
import type { Identity, ProjectAccess, Sql } from '../core/context';
import { problem, type Problem } from '../core/errors';
import { limits } from '../core/limits';
import type { Logger } from '../core/log';
import { parseToken, sha256 } from '../core/tokens';
import { keyIdentity, markUsed, projectAccess, sessionIdentity } from '../models/identity';

export interface Forget {
  key_id?: string;
  user_id?: string;
  project_id?: string;
}

export interface Identities {
  /** Who it is, or token_invalid, token_expired. At once, where that is known. */
  ofToken(token: string): Identity | Problem | Promise<Identity | Problem>;
  /** The session of a cookie's value, null where there is none. */
  ofSession(secret: string): Promise<Identity | null>;
  access(identity: Identity, projectId: string): Promise<ProjectAccess | null>;
  forget(what: Forget): void;
  /** Writes what is still to be noted. */
  close(): Promise<void>;
}

const ENTRIES_MAX = 20_000;
const FLUSH_MS = 5_000;

export function openIdentities(sql: Sql, log: Logger): Identities {
  const identities = cache<Identity | null>();
  const accesses = cache<ProjectAccess | null>();
  const used = new Set<string>();
  const flush = async (): Promise<void> => {
    const ids = [...used];
    used.clear();
    if (ids.length)
      await markUsed(sql, ids).catch((error: unknown) => log.warn({ err: error }, 'last use of keys not noted'));
  };
  const checkIdentity = (identity: Identity | null): Identity | Problem => {
    if (!identity) return invalidToken();
    if (identity.expires_at && Date.parse(identity.expires_at) <= Date.now()) return problem('token_expired');
    used.add(identity.id);
    return identity;
  };
  const timer = setInterval(() => void flush(), FLUSH_MS).unref();
  return {
    ofToken(token) {
      const parsed = parseToken(token);
      if (!parsed) return invalidToken();
      const identity = identities.get(parsed.hash, () => keyIdentity(sql, parsed.hash));
      return identity instanceof Promise ? identity.then(checkIdentity) : checkIdentity(identity);
    },
    async ofSession(secret) {
      const hash = sha256(secret);
      const identity = await identities.get(hash, () => sessionIdentity(sql, hash, limits.sessionIdleHours));
      if (identity) used.add(identity.id);
      return identity;
    },
    access: async (identity, projectId) =>
      accesses.get(`${identity.user?.id ?? identity.id} ${projectId}`, () => projectAccess(sql, identity, projectId)),
    forget({ key_id, user_id, project_id }) {
      identities.drop(
        (_, identity) =>
          !identity ||
          [identity.id, identity.user?.id, identity.project_id].some(
            (id) => id && (id === key_id || id === user_id || id === project_id),
          ),
      );
      accesses.drop((key) =>
        Boolean(
          (user_id && key.startsWith(`${user_id} `)) ||
          (project_id && key.endsWith(` ${project_id}`)) ||
          (key_id && key.startsWith(`${key_id} `)),
        ),
      );
    },
    close: () => {
      clearInterval(timer);
      return flush();
    },
  };
}

function invalidToken(): Problem {
  return problem(
    'token_invalid',
    undefined,
    {},
    { 'WWW-Authenticate': 'Bearer realm="platform", error="invalid_token"' },
  );
}

interface Cache<T> {
  get(key: string, load: () => Promise<T>): T | Promise<T>;
  drop(which: (key: string, value: T) => boolean): void;
}

interface Entry<T> {
  value: T;
  until: number;
}

// A load that was under way when something was forgotten may have read the old row: it is answered but not kept.
function cache<T>(): Cache<T> {
  const entries = new Map<string, Entry<T>>();
  let generation = 0;
  const load = async (key: string, read: () => Promise<T>): Promise<T> => {
    const begun = generation;
    const value = await read();
    if (value === null || begun !== generation) return value;
    if (entries.size >= ENTRIES_MAX) entries.clear();
    entries.set(key, { value, until: Date.now() + limits.identityCacheMs });
    return value;
  };
  return {
    get(key, read) {
      const known = entries.get(key);
      return known && known.until > Date.now() ? known.value : load(key, read);
    },
    drop(which) {
      generation += 1;
      for (const [key, entry] of entries) if (which(key, entry.value)) entries.delete(key);
    },
  };
}
