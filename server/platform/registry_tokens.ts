// The token server of the container registry: short-lived ES256 tokens for robot accounts and API keys. A token lists
// the requested rights; whether its subject still has them is checked at every request to the embedded registry.
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  randomUUID,
  sign,
  verify,
  type KeyObject,
} from 'node:crypto';
import type { Config } from '../../core/config';
import type { Context, Sql } from '../../core/context';
import type {
  RegistryAccess,
  RegistryAction,
  RegistryContent,
  RegistryTokens,
  RepositoryName,
  Verdict,
} from '../../core/protocols/registry_content';
import { isId } from '../../core/ids';
import type { Logger } from '../../core/log/log';
import { certificateFor } from '../../drivers/certificates/authority';
import type { SecretBox } from '../../core/secrets';
import { authorityFor } from '../../models/databases/authority';
import { isPresent, markRobotsUsed, rightsOf, robotOf } from '../../models/registries/registry/rights';
import { RobotAccount } from '../../models/registries/robot_account';
import type { Platform } from './platform';
import { openUseRecorder, type UseRecorder } from './use_recorder';
import { addressBlock } from '../../core/protocols/addresses';

export interface OpenedRegistryTokens extends RegistryTokens {
  /** PEM; with it another server verifies tokens. */
  certificate(): Promise<string>;
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
  access: readonly RegistryAccess[];
}

interface KeyPair {
  privateKey: KeyObject;
  publicKey: KeyObject;
  /** Encoded header of the tokens. */
  header: string;
}

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';

const LEEWAY_SECONDS = 30;
const ISSUER = 'platform-api';
const ACTIONS: readonly string[] = ['pull', 'push', 'delete'];
/** The subject of tokens with which the platform pulls. */
const PLATFORM = 'platform';
/** A large image takes its time. */
const PLATFORM_LIFETIME_SECONDS = 3600;
const FLUSH_MS = 2_000;
const BYTES_PER_GB = 1_000_000_000;

export interface RegistryTokenOptions {
  /** Host of the registry, which tokens are for. */
  service: string;
  lifetimeSeconds: number;
  /** Registries of this size in bytes get no tokens for a push; null: the server enforces the limit. */
  sizeMax: number | null;
}

/** The embedded registry looks up rights at every request; elsewhere they last as long as a token. */
export function registryTokenOptions(config: Config): RegistryTokenOptions {
  const { registryHost: service, distributionUrl, registrySizeGb } = config;
  if (distributionUrl === null) return { service, lifetimeSeconds: 300, sizeMax: null };
  return { service, lifetimeSeconds: 60, sizeMax: registrySizeGb * BYTES_PER_GB };
}

export async function openRegistryTokens(
  { database, secrets, log, identities, attempts }: Platform,
  content: RegistryContent,
  { service, lifetimeSeconds, sizeMax }: RegistryTokenOptions,
): Promise<OpenedRegistryTokens> {
  const keys = await signingKeys(database, secrets);
  const used = recordRobots(database, log);
  const recordUse = (subject: string): void => {
    if (isId(RobotAccount.idPrefix, subject)) used.add(subject);
  };
  return {
    async issue({ username, password }, wanted, address) {
      const issued = (sub: string, access: RegistryAccess[]): ReturnType<typeof issuedToken> => {
        const claims = claimsOf(service, sub, access, lifetimeSeconds);
        return issuedToken(signed(keys, claims), claims);
      };
      const own = username === PLATFORM ? verified(keys, password, service) : null;
      if (own?.sub === PLATFORM) return issued(PLATFORM, accessWithin(own.access, wanted));
      const subject = await findSubject({ database, identities }, username, password);
      if (subject !== null)
        return issued(subject, await grantedAccess({ sql: database, content, sizeMax }, subject, wanted));
      return refusedLogin(attempts, address);
    },
    issueOwn: (access) => signed(keys, claimsOf(service, PLATFORM, access, PLATFORM_LIFETIME_SECONDS)),
    issueLogin: (registries) => ({
      username: PLATFORM,
      password: signed(keys, claimsOf(service, PLATFORM, registries.map(pullAll), PLATFORM_LIFETIME_SECONDS)),
    }),
    issuePullLogin: (name, seconds) => pullLogin(keys, service, name, seconds),
    lifetimeSeconds,
    recordUse,
    certificate: () => certificateFor('CN=platform registry tokens', keys.privateKey),
    async verify(token, name, action) {
      const claims = token === null ? null : verified(keys, token, service);
      const verdict = await verdictFor({ sql: database, content }, claims, name, action);
      if (verdict.state === 'allowed') recordUse(verdict.subject);
      return verdict;
    },
    close: () => used.close(),
  };
}

/** Credentials to pull from one repository, for a process that serves no registry. */
export async function pullLoginOf(
  { sql, secrets, config }: Pick<Context, 'sql' | 'secrets' | 'config'>,
  repository: string,
  seconds: number,
): Promise<{ username: string; password: string }> {
  return pullLogin(await signingKeys(sql, secrets), config.registryHost, repository, seconds);
}

function pullLogin(
  keys: KeyPair,
  service: string,
  name: string,
  seconds: number,
): ReturnType<RegistryTokens['issueLogin']> {
  const right: RegistryAccess = { type: 'repository', name, actions: ['pull'] };
  return { username: PLATFORM, password: signed(keys, claimsOf(service, PLATFORM, [right], seconds)) };
}

function refusedLogin(attempts: Platform['attempts'], address: string): 'rate_limited' | null {
  const block = addressBlock(address);
  if (attempts.refusal(block)) return 'rate_limited';
  attempts.count(block);
  return null;
}

function pullAll(registry: string): RegistryAccess {
  return { type: 'repository', name: `${registry}/*`, actions: ['pull'] };
}

/** For a login of the platform, with access to `acme/*` or one repository: the right to pull requested repositories. */
function accessWithin(access: readonly RegistryAccess[], wanted: readonly string[]): RegistryAccess[] {
  return wanted.flatMap((scope) => {
    const [, name = ''] = /^repository:([^:]+):[a-z,*]+$/.exec(scope) ?? [];
    const whole = `${name.slice(0, name.indexOf('/'))}/*`;
    const isWithin = name.includes('/') && access.some((one) => one.name === whole || one.name === name);
    return isWithin ? [{ type: 'repository' as const, name, actions: ['pull' as const] }] : [];
  });
}

async function verdictFor(
  { sql, content }: { sql: Sql; content: RegistryContent },
  claims: Claims | null,
  name: RepositoryName | null,
  action: RegistryAction,
): Promise<Verdict> {
  if (claims?.sub === PLATFORM && name) return verdictOfPlatform(claims, name, action);
  if (!claims || !(await isPresent(sql, claims.sub))) return { state: 'unauthorized', isKnown: false };
  if (!name) return { state: 'allowed', subject: claims.sub };
  const registry = await content.find(name.registry);
  const rights = registry ? await rightsOf(sql, claims.sub, registry) : [];
  if (!rights.includes(action)) return { state: 'denied' };
  const full = `${name.registry}/${name.repository}`;
  const isAsked = claims.access.some((entry) => entry.name === full && entry.actions.includes(action));
  return isAsked ? { state: 'allowed', subject: claims.sub } : { state: 'unauthorized', isKnown: true };
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

/** The part of the requested scopes that the subject is entitled to. Resource types except `repository` are ignored. */
async function grantedAccess(
  { sql, content, sizeMax }: { sql: Sql; content: RegistryContent; sizeMax: number | null },
  subject: string,
  wanted: readonly string[],
): Promise<RegistryAccess[]> {
  const granted: RegistryAccess[] = [];
  for (const scope of wanted) {
    const [, name = '', requested = ''] = /^repository:([^:]+):([a-z,*]+)$/.exec(scope) ?? [];
    const registry = name.includes('/') ? await content.find(name.slice(0, name.indexOf('/'))) : null;
    if (!registry) continue;
    const rights = await rightsOf(sql, subject, registry);
    const list = requested.split(',').flatMap((action) => (action === '*' ? ACTIONS : [action]));
    const isFull = sizeMax !== null && registry.size_bytes >= sizeMax;
    const actions = rights.filter((right) => list.includes(right) && !(isFull && right === 'push'));
    granted.push({ type: 'repository', name, actions });
  }
  return granted;
}

async function signingKeys(sql: Sql, secrets: SecretBox): Promise<KeyPair> {
  const { key } = await authorityFor(sql, secrets, 'registry_tokens', () => Promise.resolve(newKeys()));
  const privateKey = createPrivateKey(key);
  const publicKey = createPublicKey(privateKey);
  return { privateKey, publicKey, header: encode({ typ: 'JWT', alg: 'ES256', kid: keyIdOf(publicKey) }) };
}

/** Key id in Distribution's format (github.com/docker/libtrust): 240 bits of the hash of the key's DER form. */
function keyIdOf(publicKey: KeyObject): string {
  const digest = createHash('sha256')
    .update(publicKey.export({ type: 'spki', format: 'der' }))
    .digest()
    .subarray(0, 30);
  const bits = [...digest].map((byte) => byte.toString(2).padStart(8, '0')).join('');
  const letters = (bits.match(/.{5}/g) ?? []).map((five) => BASE32[parseInt(five, 2)]).join('');
  return (letters.match(/.{4}/g) ?? []).join(':');
}

function newKeys(): { certificate: string; key: string } {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  return {
    certificate: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

/** RFC 7515 §3.1 with ES256 (RFC 7518 §3.4). */
function signed({ privateKey, header }: KeyPair, claims: Claims): string {
  const text = `${header}.${encode(claims)}`;
  const signature = sign('sha256', Buffer.from(text), { key: privateKey, dsaEncoding: 'ieee-p1363' });
  return `${text}.${signature.toString('base64url')}`;
}

/** null for a token that is not ours, not for this service, or over. */
function verified({ publicKey, header: own }: KeyPair, token: string, service: string): Claims | null {
  const [header = '', body = '', signature = '', ...rest] = token.split('.');
  if (rest.length || header !== own) return null;
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
  return openUseRecorder({ name: 'use_of_robots', everyMs: FLUSH_MS, log }, (ids) => markRobotsUsed(sql, ids));
}
