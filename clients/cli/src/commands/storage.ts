// buckets and keys: object storage.
import { buildRouteMap } from '@stricli/core';
import { choice, sessionCommand, text, toggle, tuple, word, type Shell } from '../command';
import { deleteToBin } from '../deletion';
import { EXIT, Failure } from '../failure';
import { notice } from '../output/notice';
import { formatBytes, printOne, printRows, type Row } from '../output/print';
import { confirmByName } from '../output/terminal';
import { namesOf, type Session } from '../session';

const NAME = tuple(word('name', 'Name or id'));

async function findNamed(session: Session, path: string, what: string, given: string): Promise<Row> {
  const rows = await session.list<Row & { id: string; name: string }>(path);
  const found = rows.find(({ id, name, access_key_id }) => [id, name, access_key_id].includes(given));
  if (found) return found;
  throw new Failure(`There is no ${what} "${given}" in this project.`, EXIT.notFound, [namesOf(rows)]);
}

const BUCKET_COLUMNS = {
  NAME: 'name',
  REGION: 'region',
  ACCESS: 'access',
  OBJECTS: 'object_count',
  SIZE: (row: Row) => formatBytes(row.size_bytes),
  ENDPOINT: 'endpoint',
};

const listBuckets = sessionCommand({
  brief: 'List buckets',
  target: 'project',
  run: async (session, flags) => printRows(await session.list('/v2/buckets'), BUCKET_COLUMNS, flags),
});

const createBucket = sessionCommand<
  {
    readonly public?: boolean | undefined;
    readonly versioning?: boolean | undefined;
    readonly region?: string | undefined;
  },
  [string]
>({
  brief: 'Create a bucket',
  target: 'project',
  flags: {
    public: toggle('Anybody may read its objects'),
    versioning: toggle('Keep what is overwritten or deleted'),
    region: text('Region', 'region'),
  },
  args: tuple(word('name', 'Name: lower-case letters, digits and hyphens')),
  async run(session, flags, name) {
    const body = {
      name,
      ...(flags.public && { access: 'public_read' }),
      ...(flags.versioning && { versioning: true }),
      ...(flags.region && { region: flags.region }),
    };
    const made = await session.request('POST', '/v2/buckets', { body });
    printOne(made, flags, { id: 'id', name: 'name', access: 'access', endpoint: 'endpoint', url: 'public_url' });
  },
});

const removeBucket = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Delete an empty bucket',
  target: 'project',
  asks: true,
  output: false,
  args: NAME,
  async run(session, flags, given) {
    const { id, name } = await findNamed(session, '/v2/buckets', 'bucket', given);
    const texts = { what: `The bucket ${name} will be deleted.`, done: `Deleted the bucket ${name}.` };
    await deleteToBin({ session, flags, name: String(name), ...texts, restore: `svc bin restore ${name}` }, () =>
      session.send('DELETE', `/v2/buckets/${id}`),
    );
  },
});

export const buckets = buildRouteMap<string, Shell>({
  routes: { ls: listBuckets, create: createBucket, rm: removeBucket },
  aliases: { list: 'ls', remove: 'rm' },
  docs: { brief: 'Buckets of object storage' },
});

const KEYS = '/v2/bucket_access_keys';
const SECRET_COLUMNS = {
  name: 'name',
  access_key_id: 'access_key_id',
  secret_access_key: 'secret_access_key',
  status: 'status',
};

const listKeys = sessionCommand({
  brief: 'List access keys',
  target: 'project',
  async run(session, flags) {
    const columns = {
      NAME: 'name',
      'ACCESS KEY': 'access_key_id',
      STATUS: 'status',
      'LAST USED': 'last_used_at',
      EXPIRES: 'expires_at',
    };
    printRows(await session.list(KEYS), columns, flags);
  },
});

const createKey = sessionCommand<
  { readonly bucket?: string | undefined; readonly permission?: 'read' | 'read_write' | 'full' | undefined },
  [string]
>({
  brief: 'Create an access key, and show its secret once',
  text: 'Without --bucket the key is for all buckets of the project.',
  target: 'project',
  flags: {
    bucket: text('Only this bucket', 'name'),
    permission: choice('What the key may do (default: read_write)', ['read', 'read_write', 'full']),
  },
  args: tuple(word('name', 'Name of the key')),
  async run(session, flags, name) {
    const bucket = flags.bucket ? await findNamed(session, '/v2/buckets', 'bucket', flags.bucket) : undefined;
    const grants = [{ bucket_id: bucket?.id ?? null, permission: flags.permission ?? 'read_write' }];
    printOne(await session.request('POST', KEYS, { body: { name, grants } }), flags, SECRET_COLUMNS);
    notice('The secret is not shown again.');
  },
});

const rotateKey = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Give an access key a new secret, and show it once',
  target: 'project',
  asks: true,
  args: NAME,
  async run(session, flags, given) {
    const { id, name } = await findNamed(session, KEYS, 'access key', given);
    await confirmByName(`The old secret of ${name} ends at once.`, String(name), flags);
    printOne(await session.request('POST', `${KEYS}/${id}/rotate`), flags, SECRET_COLUMNS);
  },
});

const removeKey = sessionCommand<NonNullable<unknown>, [string]>({
  brief: 'Delete an access key',
  target: 'project',
  asks: true,
  output: false,
  args: NAME,
  async run(session, flags, given) {
    const { id, name } = await findNamed(session, KEYS, 'access key', given);
    await confirmByName(`Programs with the key ${name} lose their access. This cannot be undone.`, String(name), flags);
    await session.send('DELETE', `${KEYS}/${id}`);
    notice(`Deleted the access key ${name}.`);
  },
});

export const keys = buildRouteMap<string, Shell>({
  routes: { ls: listKeys, create: createKey, rotate: rotateKey, rm: removeKey },
  aliases: { list: 'ls', remove: 'rm' },
  docs: { brief: 'Access keys of buckets' },
});
