// Browser uploads: a form with a signed policy (POST Object). The file has to be the last field.
import { formats } from '../../core/formats/formats';
import type { ObjectMetadata } from '../../core/protocols/objects';
import { hmac, signingKey } from '../../core/protocols/sigv4';
import type { Exchange } from './endpoint_context';
import { requireGranted } from './endpoint_context';
import { S3Error } from './errors';
import { tagsOfDocument } from './metadata';
import { cannedAccess } from './settings/acl';
import { headerOf, type S3Request } from './request';
import { inviteBody } from './upload';
import { sendEmpty, sendPlainText } from './respond';
import { equals, parseCredential, type Caller } from './signature';
import { parseXml, xmlDocument } from './xml';

const FIELDS_BYTES_MAX = 20 * 1024;
const FILE_BYTES_MAX = 5 * 2 ** 30;
/** Fields that are exempt from the policy. */
const FREE = /^(x-amz-signature|policy|file|x-ignore-.*)$/;
const SIGNING = /^x-amz-(signature|credential|algorithm|date)$/;
const HEADERS = [
  ...['content-type', 'cache-control', 'content-disposition', 'content-encoding', 'content-language', 'expires'],
  'x-amz-website-redirect-location',
];

export async function postObject(exchange: Exchange): Promise<void> {
  const { request, bucket, blobs, catalog } = exchange;
  const boundary = /^multipart\/form-data;.*boundary=(?:"([^"]{1,70})"|([^;\s]{1,70}))/i.exec(
    headerOf(request, 'content-type') ?? '',
  );
  if (!boundary) throw new S3Error('MalformedPOSTRequest');
  inviteBody(request);
  const form = new Form(request.raw as AsyncIterable<Buffer>, `--${boundary[1] ?? boundary[2]}`);
  const { fields, fileName } = await form.fields();
  const key = (fields.get('key') ?? '').replaceAll('${filename}', fileName);
  if (!key || Buffer.byteLength(key) > 1024 || key.includes('\0'))
    throw new S3Error('InvalidArgument', 'The field key is missing or not valid.');
  takeAcl(request, fields);
  const { caller, limits } = await signer(exchange, new Map([...fields, ['key', key], ['bucket', bucket.name]]));
  requireGranted({ ...exchange, caller }, 's3:PutObject', key);
  requireFields(fields);
  const tags = fields.has('tagging') ? tagsOfDocument(parseXml(fields.get('tagging') ?? '', 'Tagging')) : null;
  if (tags) requireGranted({ ...exchange, caller }, 's3:PutObjectTagging', key);
  const isPublic = fields.has('acl') && cannedAccess(fields.get('acl') ?? '', bucket) === 'public_read';
  if (isPublic) requireGranted({ ...exchange, caller }, 's3:PutObjectAcl', key);
  const written = await blobs.write(bucket.id, limited(form.file(), limits));
  const stored = await catalog
    .put(bucket.id, {
      key,
      size: written.size,
      etag: written.md5,
      file_id: written.fileId,
      metadata: metadataOf(fields),
      tags,
      is_public: isPublic,
    })
    .catch(async (error: unknown) => {
      if ((error as { name?: string }).name === 'ObjectRefused') await blobs.remove(bucket.id, written.fileId);
      throw error;
    });
  exchange.wakeSweep();
  answer(exchange, fields, key, stored.etag);
}

/** Conditions of policies are about what the form asks for, not about headers beside it. @throws S3Error */
function takeAcl(request: S3Request, fields: ReadonlyMap<string, string>): void {
  const { headers } = request.raw;
  const name = Object.keys(headers).find((one) => /^x-amz-(acl|server-side-encryption)/.test(one));
  if (name !== undefined) throw new S3Error('InvalidArgument', `${name} is not offered with forms.`);
  const acl = fields.get('acl');
  if (acl !== undefined) headers['x-amz-acl'] = acl;
}

/** Rejects fields with object settings that are not supported. @throws S3Error NotImplemented */
function requireFields(fields: ReadonlyMap<string, string>): void {
  const name = [...fields.keys()].find(
    (one) =>
      (one.startsWith('x-amz-') && !one.startsWith('x-amz-meta-') && !SIGNING.test(one) && !HEADERS.includes(one)) ||
      one === 'redirect',
  );
  if (name !== undefined) throw new S3Error('NotImplemented', `The field ${name} is not offered in forms.`);
}

function answer({ request, bucket }: Exchange, fields: ReadonlyMap<string, string>, key: string, etag: string): void {
  const quoted = `"${etag}"`;
  const target = fields.get('success_action_redirect');
  if (target && /^https?:\/\//.test(target) && URL.canParse(target)) {
    const location = new URL(target);
    for (const [name, value] of [
      ['bucket', bucket.name],
      ['key', key],
      ['etag', quoted],
    ] as const)
      location.searchParams.set(name, value);
    request.response.writeHead(303, { location: location.href, 'content-length': '0' }).end();
    return;
  }
  if (fields.get('success_action_status') === '201')
    return sendPlainText(request, 201, xmlDocument('PostResponse', { Bucket: bucket.name, Key: key, ETag: quoted }), {
      etag: quoted,
      'content-type': 'application/xml',
    });
  sendEmpty({ request }, fields.get('success_action_status') === '200' ? 200 : 204, { etag: quoted });
}

interface SizeLimits {
  min: number;
  max: number;
}

/** @throws S3Error */
async function signer(
  exchange: Exchange,
  fields: ReadonlyMap<string, string>,
): Promise<{ caller: Caller; limits: SizeLimits }> {
  const policy = fields.get('policy');
  const anonymous: Caller = { key: null, isOwner: false, payload: 'UNSIGNED-PAYLOAD', chunks: null };
  if (policy === undefined) return { caller: anonymous, limits: { min: 0, max: FILE_BYTES_MAX } };
  const credential = parseCredential(fields.get('x-amz-credential') ?? '');
  if (!credential || fields.get('x-amz-algorithm') !== 'AWS4-HMAC-SHA256')
    throw new S3Error('AccessDenied', 'The form is not signed with Signature Version 4.');
  const signature = fields.get('x-amz-signature') ?? '';
  const isSignedBy = (secret: string): boolean =>
    equals(hmac(signingKey(secret, credential.scope), policy).toString('hex'), signature);
  const owner = exchange.catalog.ownerCredentials(exchange.bucket.id);
  let caller: Caller | null = null;
  if (owner.accessKeyId === credential.accessKeyId)
    caller = isSignedBy(owner.secretAccessKey) ? { ...anonymous, isOwner: true } : null;
  else {
    const key = await exchange.catalog.key(credential.accessKeyId, 'fresh');
    if (!key?.isActive) throw new S3Error('InvalidAccessKeyId');
    caller = isSignedBy(key.secretAccessKey) ? { ...anonymous, key } : null;
  }
  if (!caller) throw new S3Error('SignatureDoesNotMatch');
  return { caller, limits: requirePolicy(policy, fields) };
}

/** Every field must match a condition of the policy, and every field needs one. @throws S3Error */
function requirePolicy(policy: string, fields: ReadonlyMap<string, string>): SizeLimits {
  const { expiration, conditions } = parsePolicy(policy);
  const end = typeof expiration === 'string' ? formats.timestamp(expiration) : null;
  if (end === null)
    throw new S3Error(
      'InvalidPolicyDocument',
      'The expiration of the policy must be a time such as 2030-01-31T12:00:00Z.',
    );
  if (Date.parse(end.value) <= Date.now()) throw new S3Error('AccessDenied', 'The policy of the form has expired.');
  const limits = { min: 0, max: FILE_BYTES_MAX };
  const mentioned = new Set<string>();
  for (const condition of conditions) {
    const [verb, name, value] = conditionOf(condition);
    if (verb === 'content-length-range') {
      [limits.min, limits.max] = [Number(name), Math.min(Number(value), FILE_BYTES_MAX)];
      if (!(limits.min >= 0 && limits.max >= limits.min)) throw new S3Error('InvalidPolicyDocument');
      continue;
    }
    const field = String(name).replace(/^\$/, '').toLowerCase();
    mentioned.add(field);
    const given = fields.get(field) ?? '';
    const holds = verb === 'eq' ? given === value : verb === 'starts-with' ? given.startsWith(String(value)) : false;
    if (!holds) throw new S3Error('AccessDenied', `The condition of the policy for ${field} does not hold.`);
  }
  const extra = [...fields.keys()].find((name) => !mentioned.has(name) && !FREE.test(name) && name !== 'bucket');
  if (extra !== undefined) throw new S3Error('AccessDenied', `The policy does not allow the field ${extra}.`);
  if (!mentioned.has('key')) throw new S3Error('InvalidPolicyDocument', 'The policy has no condition for the key.');
  return limits;
}

/** Operator, field and value of a condition. @throws S3Error InvalidPolicyDocument */
function conditionOf(condition: unknown): [string, unknown, unknown] {
  if (!Array.isArray(condition)) {
    const entries = Object.entries(condition as object);
    if (entries.length !== 1) throw new S3Error('InvalidPolicyDocument', 'A condition must have exactly one field.');
    const [[name, value]] = entries as [[string, unknown]];
    return ['eq', name, value];
  }
  const [verb, name, value] = condition as unknown[];
  if (typeof verb !== 'string' || condition.length !== 3)
    throw new S3Error('InvalidPolicyDocument', 'A condition must have an operator, a field and a value.');
  return [verb.toLowerCase(), name, value];
}

function parsePolicy(policy: string): { expiration: unknown; conditions: unknown[] } {
  try {
    const document = JSON.parse(Buffer.from(policy, 'base64').toString('utf8')) as {
      expiration?: unknown;
      conditions?: unknown;
    };
    const { conditions, expiration } = document;
    if (Array.isArray(conditions) && conditions.every((one) => typeof one === 'object' && one !== null))
      return { expiration, conditions };
  } catch {
    // A malformed policy: see below.
  }
  throw new S3Error('InvalidPolicyDocument');
}

function metadataOf(fields: ReadonlyMap<string, string>): ObjectMetadata {
  const headers = Object.fromEntries(
    HEADERS.flatMap((name) => (fields.get(name) ? [[name, fields.get(name) as string]] : [])),
  );
  if (Object.values(headers).some((value) => !/^[\x20-\x7e]*$/.test(value))) throw new S3Error('InvalidArgument');
  const user = Object.fromEntries(
    [...fields].flatMap(([name, value]) =>
      name.startsWith('x-amz-meta-') ? [[name.slice(11), encodeURI(value)]] : [],
    ),
  );
  return { headers, user };
}

async function* limited(content: AsyncIterable<Buffer>, { min, max }: SizeLimits): AsyncGenerator<Buffer> {
  let size = 0;
  for await (const piece of content) {
    size += piece.length;
    if (size > max) throw new S3Error('EntityTooLarge');
    yield piece;
  }
  if (size < min) throw new S3Error('InvalidArgument', 'The file is smaller than the policy allows.');
}

/** multipart/form-data (RFC 7578), parsed as a stream. */
class Form {
  private readonly source: AsyncIterator<Buffer>;
  private rest: Buffer = Buffer.from('\r\n');
  private readonly mark: Buffer;

  constructor(body: AsyncIterable<Buffer>, boundary: string) {
    this.source = body[Symbol.asyncIterator]();
    this.mark = Buffer.from(`\r\n${boundary}`);
  }

  /** Reads the fields before the file. */
  async fields(): Promise<{ fields: Map<string, string>; fileName: string }> {
    const fields = new Map<string, string>();
    let bytes = 0;
    await this.upTo(this.mark, FIELDS_BYTES_MAX);
    for (;;) {
      if ((await this.upTo(Buffer.from('\r\n'), 4)).toString() === '--')
        throw new S3Error('InvalidArgument', 'The form has no field file.');
      const head = (await this.upTo(Buffer.from('\r\n\r\n'), FIELDS_BYTES_MAX)).toString('utf8');
      const name = /^content-disposition:[^\r\n]*?\bname="([^"\r\n]*)"/im.exec(head)?.[1]?.toLowerCase();
      if (name === undefined) throw new S3Error('MalformedPOSTRequest');
      if (name === 'file')
        return { fields, fileName: /\bfilename="([^"\r\n]*)"/i.exec(head)?.[1]?.replace(/^.*[\\/]/, '') ?? '' };
      const value = (await this.upTo(this.mark, FIELDS_BYTES_MAX)).toString('utf8');
      bytes += name.length + value.length;
      if (bytes > FIELDS_BYTES_MAX || fields.has(name)) throw new S3Error('MalformedPOSTRequest');
      fields.set(name, value);
    }
  }

  /** The content of the file, up to the next boundary; everything after it is ignored. */
  async *file(): AsyncGenerator<Buffer> {
    for (;;) {
      const at = this.rest.indexOf(this.mark);
      if (at >= 0) {
        if (at) yield this.rest.subarray(0, at);
        return;
      }
      const safe = this.rest.length - this.mark.length;
      if (safe > 0) {
        yield this.rest.subarray(0, safe);
        this.rest = this.rest.subarray(safe);
      }
      await this.more();
    }
  }

  private async upTo(mark: Buffer, max: number): Promise<Buffer> {
    for (;;) {
      const at = this.rest.indexOf(mark);
      if (at >= 0 && at <= max) {
        const found = this.rest.subarray(0, at);
        this.rest = this.rest.subarray(at + mark.length);
        return found;
      }
      if (at > max || this.rest.length > max + mark.length) throw new S3Error('MalformedPOSTRequest');
      await this.more();
    }
  }

  private async more(): Promise<void> {
    const { value, done } = await this.source.next();
    if (done) throw new S3Error('MalformedPOSTRequest');
    this.rest = Buffer.concat([this.rest, value]);
  }
}
