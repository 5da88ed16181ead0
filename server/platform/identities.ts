// Identities and accesses, cached for at most two seconds and forgotten at once after a NOTIFY:
// a revoked key stops here immediately, and within two seconds on a replica that missed the message.
import type { Identity, ProjectAccess, Sql } from '../../core/context';
import { problem, type Problem } from '../../core/errors';
import { limits } from '../../core/limits';
import type { Logger } from '../../core/log/log';
import { parseToken, sha256 } from '../../core/accounts/tokens';
import {
  accessTokenIdentity,
  keyIdentity,
  keyIdentityById,
  markUsed,
  projectAccess,
  sessionIdentity,
  sessionIdentityById,
} from '../../models/identity/identity';
import { expiringCache } from './expiring_cache';
import { openUseRecorder } from './use_recorder';

const FLUSH_MS = 5_000;

interface Forget {
  key_id?: string;
  user_id?: string;
  project_id?: string;
}

export interface Identities {
  /** @throws token_invalid, token_expired */
  ofToken(token: string): Promise<Identity>;
  /** The session of a cookie's value, null where there is none. */
  ofSession(secret: string): Promise<Identity | null>;
  /**
   * The current database state of an identity that was authenticated before. Records no use of a session, which would
   * otherwise never be idle while a page follows a log. @throws token_invalid, token_expired, session_required
   */
  current(identity: Identity): Promise<Identity>;
  access(identity: Identity, projectId: string): Promise<ProjectAccess | null>;
  forget(what: Forget): void;
  /** Calls the function after each `forget`, until the returned one is called. */
  onForget(listener: () => void): () => void;
  /** Flushes pending writes. */
  close(): Promise<void>;
}

export function openIdentities(sql: Sql, log: Logger): Identities {
  const identities = expiringCache<Identity | null>(limits.identityCacheMs);
  const accesses = expiringCache<ProjectAccess | null>(limits.identityCacheMs);
  const listeners = new Set<() => void>();
  const used = openUseRecorder({ name: 'use_of_keys', everyMs: FLUSH_MS, log }, (ids) => markUsed(sql, ids));
  return {
    async ofToken(token) {
      const parsed = parseToken(token);
      if (!parsed) throw invalidToken();
      const find = parsed.kind === 'oauth' ? accessTokenIdentity : keyIdentity;
      const identity = await identities.get(parsed.hash, () => find(sql, parsed.hash));
      if (!identity) throw invalidToken();
      if (isExpired(identity)) throw problem('token_expired');
      used.add(identity.id);
      return identity;
    },
    async ofSession(secret) {
      const hash = sha256(secret);
      const identity = await identities.get(hash, () => sessionIdentity(sql, hash, limits.sessionIdleHours));
      if (identity) used.add(identity.id);
      return identity;
    },
    async current(known) {
      const identity = await identities.get(known.token_hash ?? known.id, () => identityById(sql, known));
      if (known.kind !== 'session') used.add(known.id);
      return requireCurrent(known, identity);
    },
    access: async (identity, projectId) =>
      accesses.get(`${identity.user?.id ?? identity.id} ${projectId}`, () => projectAccess(sql, identity, projectId)),
    forget(what) {
      identities.drop((_, identity) => !identity || concernsIdentity(identity, what));
      accesses.drop((key) => concernsAccess(key, what));
      for (const listener of listeners) listener();
    },
    onForget(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    close: () => used.close(),
  };
}

function identityById(sql: Sql, { kind, id, token_hash }: Identity): Promise<Identity | null> {
  if (token_hash) return accessTokenIdentity(sql, token_hash);
  return kind === 'session' ? sessionIdentityById(sql, id, limits.sessionIdleHours) : keyIdentityById(sql, id);
}

function requireCurrent(known: Identity, current: Identity | null): Identity {
  const isOver = isExpired(known) || !current || isExpired(current);
  if (!isOver) return current;
  if (known.kind === 'session') throw problem('session_required', 'The session has ended. Log in again.');
  throw isExpired(current ?? known) ? problem('token_expired') : invalidToken();
}

function isExpired({ expires_at }: Identity): boolean {
  return expires_at !== null && Date.parse(expires_at) <= Date.now();
}

function concernsIdentity(identity: Identity, { key_id, user_id, project_id }: Forget): boolean {
  const ids = [identity.id, identity.user?.id, identity.project_id];
  return ids.some((id) => Boolean(id) && (id === key_id || id === user_id || id === project_id));
}

/** @param key person or key, a space, the project */
function concernsAccess(key: string, { key_id, user_id, project_id }: Forget): boolean {
  const [caller, project] = key.split(' ');
  return caller === user_id || caller === key_id || project === project_id;
}

function invalidToken(): Problem {
  return problem(
    'token_invalid',
    undefined,
    {},
    { 'WWW-Authenticate': 'Bearer realm="platform", error="invalid_token"' },
  );
}
