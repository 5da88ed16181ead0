// Users of the gateway: one per bucket as owner, one per access key. The name identifies the resource.
import type { Credentials } from '../../core/protocols/sigv4';
import { DriverError, type DriverContext, type Fingerprint, type Owned } from '../../core/driver';
import type { RgwApi } from './api';

export const DRIVER_NAME = 'rgw';

type UserKind = 'bucket' | 'key';

export interface RgwUser {
  user_id: string;
  display_name: string;
  suspended: number;
  max_buckets: number;
  keys: { user: string; access_key: string; secret_key: string }[];
  subusers: unknown[];
  caps: unknown[];
  bucket_quota: { enabled: boolean; max_size: number };
}

export interface DesiredUser {
  uid: string;
  /** Stored as the display name: users with another one do not belong to the platform. */
  mark: string;
  credentials: Credentials;
  suspended: boolean;
  /** -1: none. */
  maxBuckets: number;
}

const PAGE = 1000;

export function rgwUserId(prefix: string, kind: UserKind, id: string): string {
  return `${prefix}${kind}-${id}`;
}

export function rgwUserMark(kind: UserKind, id: string): string {
  return `platform ${kind} ${id}`;
}

export function findRgwUser(api: RgwApi, uid: string, ctx: DriverContext): Promise<RgwUser | null> {
  return api.admin<RgwUser>('GET', 'user', { uid }, ctx);
}

/** Checks that the gateway responds and accepts the admin key. */
export async function rgwFingerprint(
  api: RgwApi,
  url: string,
  prefix: string,
  ctx: DriverContext,
): Promise<Fingerprint> {
  const failure = await findRgwUser(api, prefix, ctx).then(
    () => null,
    (error: Error) => error.message,
  );
  return { healthy: failure === null, reason: failure, facts: { url } };
}

export function isRgwUserUpToDate(user: RgwUser, desired: DesiredUser): boolean {
  const [key, ...more] = user.keys;
  return (
    key?.access_key === desired.credentials.accessKeyId &&
    key.secret_key === desired.credentials.secretAccessKey &&
    !more.length &&
    !user.subusers.length &&
    !user.caps.length &&
    Boolean(user.suspended) === desired.suspended &&
    user.max_buckets === desired.maxBuckets
  );
}

/** @throws DriverError conflict for a foreign user of that name, or a key that belongs to another user */
export async function ensureRgwUser(
  api: RgwApi,
  user: RgwUser | null,
  desired: DesiredUser,
  ctx: DriverContext,
): Promise<void> {
  const { uid, mark, credentials, suspended, maxBuckets } = desired;
  const key = {
    'access-key': credentials.accessKeyId,
    'secret-key': credentials.secretAccessKey,
    'generate-key': false,
  };
  const settings = { suspended, 'max-buckets': maxBuckets };
  if (user === null) {
    await api.admin('PUT', 'user', { uid, 'display-name': mark, ...key, ...settings }, ctx);
    return;
  }
  if (user.display_name !== mark) throw foreignRgwUser();
  if (user.subusers.length || user.caps.length) {
    // Added permissions cannot all be removed individually; a user without data is cheap to recreate.
    throw new DriverError(
      'conflict',
      'A user of the object gateway that belongs to the platform has rights of its own.',
    );
  }
  await api.admin('POST', 'user', { uid, ...settings }, ctx);
  await api.admin('PUT', 'user', { key: '', uid, ...key }, ctx);
  for (const { access_key } of user.keys)
    if (access_key !== credentials.accessKeyId)
      await api.admin('DELETE', 'user', { key: '', uid, 'access-key': access_key }, ctx);
}

export function foreignRgwUser(): DriverError {
  return new DriverError(
    'conflict',
    'The object gateway has a user of this name that does not belong to the platform.',
  );
}

/** All platform users of one kind. */
export async function* listRgwUsers(
  api: RgwApi,
  prefix: string,
  kind: UserKind,
  ctx: DriverContext,
): AsyncGenerator<Owned> {
  const start = rgwUserId(prefix, kind, '');
  for (let marker: string | undefined = ''; marker !== undefined;) {
    const query: Record<string, string | number> = { list: '', 'max-entries': PAGE, ...(marker && { marker }) };
    const page: { keys: string[]; truncated: boolean; marker?: string } | null = await api.admin(
      'GET',
      'user',
      query,
      ctx,
    );
    for (const uid of page?.keys ?? []) {
      if (!uid.startsWith(start)) continue;
      const id = uid.slice(start.length);
      const user = await findRgwUser(api, uid, ctx);
      if (user?.display_name === rgwUserMark(kind, id)) yield { ref: { driver: DRIVER_NAME, name: id }, owner_id: id };
    }
    marker = page?.truncated ? page.marker : undefined;
  }
}
