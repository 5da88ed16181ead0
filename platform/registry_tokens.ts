// The token server of the container registry: ES256 tokens of five minutes, for robot accounts and API keys. A token
// says which rights were asked for; whether its subject still has them is looked up at every request.
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomUUID,
  sign,
  verify,
  type KeyObject,
} from 'node:crypto';
import type { Sql } from '../core/context';
import type {
  RegistryAction,
  RegistryContent,
  RegistryTokens,
  RepositoryName,
  Verdict,
} from '../core/registry_content';
import type { Logger } from '../core/log';
import type { SecretBox } from '../core/secrets';
import { authorityFor } from '../models/authority';
import { isPresent, markRobotsUsed, rightsOf, robotOf } from '../models/registry/rights';
import type { Platform } from './platform';
import { openUseRecorder, type UseRecorder } from './use_recorder';

export interface OpenedRegistryTokens extends RegistryTokens {
  close(): Promise<void>;
}

interface Claims {
  iss: string;
  aud: string;
  sub: string;
  exp: number;
  nbf: number;
  iat: number;
  jti: string;
  access: { type: 'repository'; name: string; actions: RegistryAction[] }[];
}

interface KeyPair {
  privateKey: KeyObject;
  publicKey: KeyObject;
}

const LIFETIME_SECONDS = 300;
const LEEWAY_SECONDS = 30;
const ISSUER = 'platform-api';
const ACTIONS: readonly string[] = ['pull', 'push', 'delete'];
const HEADER = encode({ typ: 'JWT', alg: 'ES256' });
/** The subject of tokens with which the platform pulls. */
const PLATFORM = 'platform';
/** A large image takes its time. */
const PLATFORM_LIFETIME_SECONDS = 3600;
const FLUSH_MS = 2_000;

/** @param service host of the registry, which tokens are for */
export async function openRegistryTokens(
  { database, secrets, log, identities, attempts }: Platform,
  content: RegistryContent,
  service: string,
): Promise<OpenedRegistryTokens> {
  const keys = await signingKeys(database, secrets);
  const used = recordRobots(database, log);
  return {
    async issue({ username, password }, wanted, address) {
      const subject = await findSubject({ database, identities }, username, password);
      if (subject === null) {
        if (attempts.refusal(address)) return 'rate_limited';
        attempts.count(address);
        return null;
      }
      const access = await grantedAccess(database, content, subject, wanted);
      const claims = claimsOf(service, subject, access, LIFETIME_SECONDS);
      return issuedToken(signed(keys, claims), claims);
    },
    issuePull(name) {
      const access: Claims['access'] = [{ type: 'repository', name, actions: ['pull'] }];
      return signed(keys, claimsOf(service, PLATFORM, access, PLATFORM_LIFETIME_SECONDS));
    },
    async verify(token, name, action): Promise<Verdict> {
      const claims = token === null ? null : verified(keys, token, service);
      if (claims?.sub === PLATFORM && name) return verdictOfPlatform(claims, name, action);
      if (!claims || !(await isPresent(database, claims.sub))) return { state: 'unauthorized', isKnown: false };
      if (!name) return { state: 'allowed', subject: claims.sub };
      const registry = await content.find(name.registry);
      const rights = registry ? await rightsOf(database, claims.sub, registry) : [];
      if (!rights.includes(action)) return { state: 'denied' };
      const full = `${name.registry}/${name.repository}`;
      const isAsked = claims.access.some((entry) => entry.name === full && entry.actions.includes(action));
      if (!isAsked) return { state: 'unauthorized', isKnown: true };
      if (claims.sub.startsWith('rob_')) used.add(claims.sub);
      return { state: 'allowed', subject: claims.sub };
    },
    close: () => used.close(),
  };
}

function verdictOfPlatform({ access }: Claims, name: RepositoryName, action: RegistryAction): Verdict {
  const full = `${name.registry}/${name.repository}`;
  const isAsked = access.some((entry) => entry.name === full && entry.actions.includes(action));
  return isAsked ? { state: 'allowed', subject: PLATFORM } : { state: 'denied' };
}

function issuedToken(token: string, { iat, exp }: Claims): { token: string; expires_in: number; issued_at: string } {
  return { token, expires_in: exp - iat, issued_at: new Date(iat * 1000).toISOString() };
}

function claimsOf(aud: string, sub: string, access: Claims['access'], seconds: number): Claims {
  const iat = Math.floor(Date.now() / 1000);
  return { iss: ISSUER, aud, sub, iat, nbf: iat - LEEWAY_SECONDS, exp: iat + seconds, jti: randomUUID(), access };
}

/** The id of the robot account or API key behind the credentials. */
async function findSubject(
  { database, identities }: Pick<Platform, 'database' | 'identities'>,
  username: string,
  password: string,
): Promise<string | null> {
  const robot = username.startsWith('robot-') ? await robotOf(database, username, password) : null;
  if (robot) return robot;
  const identity = await identities.ofToken(password).catch(() => null);
  return identity?.id ?? null;
}

/** Of the scopes that were asked for, what the subject may have. Other kinds than repositories are passed over. */
async function grantedAccess(
  sql: Sql,
  content: RegistryContent,
  subject: string,
  wanted: readonly string[],
): Promise<Claims['access']> {
  const granted: Claims['access'] = [];
  for (const scope of wanted) {
    const [, name = '', asked = ''] = /^repository:([^:]+):([a-z,*]+)$/.exec(scope) ?? [];
    const registry = name.includes('/') ? await content.find(name.slice(0, name.indexOf('/'))) : null;
    if (!registry) continue;
    const rights = await rightsOf(sql, subject, registry);
    const list = asked.split(',').flatMap((action) => (action === '*' ? ACTIONS : [action]));
    granted.push({ type: 'repository', name, actions: rights.filter((right) => list.includes(right)) });
  }
  return granted;
}

async function signingKeys(sql: Sql, secrets: SecretBox): Promise<KeyPair> {
  const { key } = await authorityFor(sql, secrets, 'registry_tokens', () => Promise.resolve(newKeys()));
  const privateKey = createPrivateKey(key);
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

function newKeys(): { certificate: string; key: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    certificate: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

/** RFC 7515 §3.1 with ES256 (RFC 7518 §3.4). */
function signed({ privateKey }: KeyPair, claims: Claims): string {
  const text = `${HEADER}.${encode(claims)}`;
  const signature = sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' });
  return `${text}.${signature.toString('base64url')}`;
}

/** null for a token that is not ours, not for this service, or over. */
function verified({ publicKey }: KeyPair, token: string, service: string): Claims | null {
  const [header = '', body = '', signature = '', ...rest] = token.split('.');
  if (rest.length || header !== HEADER) return null;
  const key = { key: publicKey, dsaEncoding: 'ieee-p1363' as const };
  if (!verify('sha256', Buffer.from(`${header}.${body}`), key, Buffer.from(signature, 'base64url'))) return null;
  const claims = JSON.parse(Buffer.from(body, 'base64url').toString('utf8')) as Claims;
  const isOurs = claims.iss === ISSUER && claims.aud === service;
  return isOurs && claims.exp > Date.now() / 1000 ? claims : null;
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url');
}

function recordRobots(sql: Sql, log: Logger): UseRecorder {
  const warn = (error: unknown): void => log.warn({ err: error }, 'last use of robot accounts not recorded');
  return openUseRecorder(FLUSH_MS, (ids) => markRobotsUsed(sql, ids).catch(warn));
}
