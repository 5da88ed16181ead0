// A bucket as backup store: any S3 service with Signature Version 4. Larger files are uploaded in parts, a few at a
// time, each hashed and signed, so that a change in transit is detected.
import { createHash } from 'node:crypto';
import { constants } from 'node:fs';
import { open, type FileHandle } from 'node:fs/promises';
import { Readable } from 'node:stream';
import type { ReadableStream } from 'node:stream/web';
import { childElements, elementText, parseXml, type XmlNode } from '../../engines/object_storage';
import type { BackupStore, FileDigest, StoredFile } from '../backup_store';
import { checkpoint, DriverError, type DriverContext, isDiskFull } from '../../core/driver';
import { away, s3Requests, type S3Options, type SendS3 } from './s3_requests';

const MIB = 2 ** 20;
const PART_MIN_BYTES = 16 * MIB;
/** S3 allows 10,000. */
const PARTS_MAX = 9_000;
const PARTS_AT_ONCE = 3;
const DOWNLOAD_TRIES = 5;

export function s3BackupStore(options: S3Options & { prefix: string }): BackupStore {
  const send = s3Requests(options);
  const keyOf = (name: string): string => options.prefix + name;
  const nameOf = (key: string): string => key.slice(options.prefix.length);
  return {
    address: `s3://${options.bucket}/${options.prefix}`.replace(/\/$/, ''),
    upload: (name, file, ctx) => upload(send, keyOf(name), file, ctx),
    async write(name, text, ctx) {
      await discard(send({ method: 'PUT', key: keyOf(name), body: Buffer.from(text) }, ctx));
    },
    async read(name, ctx) {
      const response = await send({ method: 'GET', key: keyOf(name) }, ctx, [404]);
      if (response.status !== 404) return textOf(send, response);
      await requireKeyMissing(send, response);
      return null;
    },
    async has(name, ctx) {
      return (await send({ method: 'HEAD', key: keyOf(name) }, ctx, [404])).status !== 404;
    },
    open: async (name, ctx) => (await contentOf(send, keyOf(name), 0, ctx)).stream,
    download: (name, file, ctx) => download(send, keyOf(name), file, ctx),
    async *list(prefix, ctx) {
      for await (const page of pages(send, { prefix: keyOf(prefix) }, ctx))
        for (const node of childElements(page, 'Contents')) yield toStoredFile(node, nameOf);
    },
    async *listFolders(prefix, ctx) {
      for await (const page of pages(send, { prefix: keyOf(prefix), delimiter: '/' }, ctx))
        for (const node of childElements(page, 'CommonPrefixes'))
          yield decoded(elementText(node, 'Prefix')).slice(keyOf(prefix).length, -1);
    },
    async remove(name, ctx) {
      await discard(send({ method: 'DELETE', key: keyOf(name) }, ctx, [404]));
    },
    removeUnfinished: (prefix, before, ctx) => removeUnfinished(send, keyOf(prefix), before, ctx),
  };
}

async function upload(send: SendS3, key: string, file: string, ctx: DriverContext): Promise<FileDigest> {
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    const { size } = await handle.stat();
    if (size > PART_MIN_BYTES) return await uploadParts(send, key, { handle, size }, ctx);
    const body = await readPart(handle, 0, size);
    await discard(send({ method: 'PUT', key, body }, ctx));
    return { size_bytes: body.length, sha256: createHash('sha256').update(body).digest('hex') };
  } finally {
    await handle.close();
  }
}

interface OpenFile {
  handle: FileHandle;
  size: number;
}

async function uploadParts(send: SendS3, key: string, file: OpenFile, ctx: DriverContext): Promise<FileDigest> {
  // Abort an unfinished upload of this file by a killed process.
  await removeUnfinished(send, key, new Date(), ctx);
  const begun = parseXml(
    await textOf(send, await send({ method: 'POST', key, query: { uploads: '' } }, ctx)),
    'InitiateMultipartUploadResult',
  );
  const uploadId = elementText(begun, 'UploadId') ?? '';
  try {
    const { parts, sha256 } = await sendParts(send, { key, uploadId }, file, ctx);
    const listed = parts.map((etag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${etag}</ETag></Part>`);
    const body = Buffer.from(`<CompleteMultipartUpload>${listed.join('')}</CompleteMultipartUpload>`);
    const answer = await textOf(send, await send({ method: 'POST', key, query: { uploadId }, body }, ctx));
    // The status may be 200 before the service has completed the upload.
    if (!answer.includes('CompleteMultipartUploadResult'))
      throw away(send.title, new Error('the upload was not completed'));
    return { size_bytes: file.size, sha256 };
  } catch (error) {
    await discard(send({ method: 'DELETE', key, query: { uploadId } }, ctx, [404])).catch(() => undefined);
    throw error;
  }
}

async function sendParts(
  send: SendS3,
  { key, uploadId }: { key: string; uploadId: string },
  { handle, size }: OpenFile,
  ctx: DriverContext,
): Promise<{ parts: string[]; sha256: string }> {
  const partBytes = Math.max(PART_MIN_BYTES, Math.ceil(size / PARTS_MAX / MIB) * MIB);
  const hash = createHash('sha256');
  const parts: string[] = [];
  const underWay = new Set<Promise<void>>();
  for (let offset = 0, number = 1; offset < size; offset += partBytes, number += 1) {
    const body = await readPart(handle, offset, Math.min(partBytes, size - offset));
    hash.update(body);
    const one = sendPart(send, { key, uploadId, number, body }, ctx).then((etag) => {
      parts[number - 1] = etag;
      underWay.delete(one);
    });
    one.catch(() => undefined); // awaited below
    underWay.add(one);
    if (underWay.size >= PARTS_AT_ONCE) await Promise.race(underWay);
  }
  await Promise.all(underWay);
  return { parts, sha256: hash.digest('hex') };
}

async function sendPart(
  send: SendS3,
  { key, uploadId, number, body }: { key: string; uploadId: string; number: number; body: Buffer<ArrayBuffer> },
  ctx: DriverContext,
): Promise<string> {
  const query = { partNumber: String(number), uploadId };
  return (await discard(send({ method: 'PUT', key, query, body }, ctx))).headers.get('etag') ?? '';
}

/** @throws DriverError transient where the file has been truncated */
async function readPart(handle: FileHandle, offset: number, length: number): Promise<Buffer<ArrayBuffer>> {
  const part = Buffer.alloc(length);
  for (let filled = 0; filled < length;) {
    const { bytesRead } = await handle.read(part, filled, length - filled, offset + filled);
    if (bytesRead === 0) throw new DriverError('transient', 'A file has changed while it was stored.');
    filled += bytesRead;
  }
  return part;
}

async function download(send: SendS3, key: string, file: string, ctx: DriverContext): Promise<FileDigest> {
  const target = await open(file, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
  const hash = createHash('sha256');
  let written = 0;
  try {
    for (let attempt = 1; ; attempt += 1) {
      try {
        const { stream, length } = await contentOf(send, key, written, ctx);
        for await (const piece of stream as AsyncIterable<Buffer>) {
          checkpoint(ctx);
          await target.writeFile(piece);
          hash.update(piece);
          written += piece.length;
        }
        if (length === null || written === length) break;
        throw new Error(`${written} of ${length} bytes`);
      } catch (error) {
        if (error instanceof DriverError) throw error;
        if (isDiskFull(error) || attempt >= DOWNLOAD_TRIES) throw toError(send, error);
      }
    }
    await target.sync();
    return { size_bytes: written, sha256: hash.digest('hex') };
  } finally {
    await target.close();
  }
}

function toError({ title }: SendS3, error: unknown): unknown {
  return isDiskFull(error) ? error : away(title, error);
}

/** Content from `offset` on. `length`: of the whole file. */
async function contentOf(
  send: SendS3,
  key: string,
  offset: number,
  ctx: DriverContext,
): Promise<{ stream: Readable; length: number | null }> {
  const headers = offset > 0 ? { range: `bytes=${offset}-` } : undefined;
  const response = await send({ method: 'GET', key, ...(headers && { headers }) }, ctx, [404]);
  if (response.status === 404) await requireKeyMissing(send, response);
  if (response.status === 404) throw new DriverError('conflict', `A file is no longer in the ${send.title}.`);
  if (offset > 0 && response.status !== 206) throw away(send.title, new Error('the service sends no ranges'));
  const length = response.headers.get('content-length');
  const stream = response.body ? Readable.fromWeb(response.body as ReadableStream) : Readable.from([]);
  return { stream, length: length === null ? null : offset + Number(length) };
}

async function* pages(send: SendS3, query: Record<string, string>, ctx: DriverContext): AsyncIterable<XmlNode> {
  const more = { 'list-type': '2', 'encoding-type': 'url', ...query };
  for (let token: string | undefined; ;) {
    const response = await send(
      { method: 'GET', query: { ...more, ...(token !== undefined && { 'continuation-token': token }) } },
      ctx,
    );
    const page = parseXml(await textOf(send, response), 'ListBucketResult');
    yield page;
    token = elementText(page, 'NextContinuationToken');
    if (elementText(page, 'IsTruncated') !== 'true' || token === undefined) return;
  }
}

async function removeUnfinished(send: SendS3, prefix: string, before: Date, ctx: DriverContext): Promise<number> {
  const response = await send({ method: 'GET', query: { uploads: '', prefix, 'encoding-type': 'url' } }, ctx);
  let removed = 0;
  // Only one page is read: further uploads are found by the next call.
  for (const node of childElements(parseXml(await textOf(send, response), 'ListMultipartUploadsResult'), 'Upload')) {
    const initiated = Date.parse(elementText(node, 'Initiated') ?? '');
    const [key, uploadId] = [decoded(elementText(node, 'Key')), elementText(node, 'UploadId') ?? ''];
    if (!(initiated <= before.getTime())) continue;
    await discard(send({ method: 'DELETE', key, query: { uploadId } }, ctx, [404]));
    removed += 1;
  }
  return removed;
}

function toStoredFile(node: XmlNode, nameOf: (key: string) => string): StoredFile {
  return {
    name: nameOf(decoded(elementText(node, 'Key'))),
    size_bytes: Number(elementText(node, 'Size')),
    modified_at: new Date(elementText(node, 'LastModified') ?? 0).toISOString(),
  };
}

function decoded(text: string | undefined): string {
  return decodeURIComponent((text ?? '').replaceAll('+', '%20'));
}

/** Discards the body of a response, which frees the connection. */
async function discard(answer: Promise<Response>): Promise<Response> {
  const response = await answer;
  await response.body?.cancel();
  return response;
}

async function textOf({ title }: SendS3, response: Response): Promise<string> {
  try {
    return await response.text();
  } catch (error) {
    throw away(title, error);
  }
}

/** A missing bucket does not mean that a file in it is missing. */
async function requireKeyMissing(send: SendS3, response: Response): Promise<void> {
  if ((await textOf(send, response)).includes('NoSuchBucket'))
    throw new DriverError('transient', `The bucket of the ${send.title} does not exist.`);
}
