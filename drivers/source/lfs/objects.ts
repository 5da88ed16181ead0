// Large files on disk: each is downloaded once, verified by its digest, and stored beside the mirror of its repository.
import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import path from 'node:path';
import { Transform } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { DriverContext } from '../../../core/driver';
import { newFileStream } from '../../../core/files';
import { SourceError } from '../../source';
import { resolveWebEndpoint } from '../address';
import { isFetchDiskFull } from '../failure';
import type { WebResponse } from '../web_request';
import type { Download } from './batch';
import { requestLfs } from './request';
import type { LfsServer } from './server';

export function largeObjectPath(directory: string, oid: string): string {
  return path.join(directory, oid);
}

/** Whether the complete object exists; records its use. */
export async function hasLargeObject(
  directory: string,
  { oid, size }: { oid: string; size: number },
): Promise<boolean> {
  const file = largeObjectPath(directory, oid);
  const stats = await stat(file).catch(() => null);
  if (stats?.size !== size) return false;
  await utimes(file, new Date(), new Date());
  return true;
}

/** @throws SourceError */
export async function fetchLargeObject(
  server: LfsServer,
  directory: string,
  download: Download,
  ctx: DriverContext,
): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const partial = path.join(directory, `partial-${randomUUID()}`);
  const answer = await openDownload(server, download, ctx);
  try {
    const digest = await save(answer, partial, download.size, server.endpoint.host);
    if (digest !== download.oid) throw damaged(server.endpoint.host, download.oid);
    await rename(partial, largeObjectPath(directory, download.oid));
  } finally {
    await rm(partial, { force: true });
  }
}

/** Removes incomplete downloads, and the least recently used objects. */
export async function pruneLargeObjects(directory: string, bytesMax: number): Promise<void> {
  const names = await readdir(directory).catch(() => []);
  const kept: { file: string; bytes: number; usedAt: number }[] = [];
  for (const name of names) {
    const file = path.join(directory, name);
    const stats = await stat(file).catch(() => null);
    if (!stats || name.startsWith('partial-')) await rm(file, { force: true });
    else kept.push({ file, bytes: stats.size, usedAt: stats.mtimeMs });
  }
  let sum = 0;
  for (const { file, bytes } of kept.sort((one, other) => other.usedAt - one.usedAt)) {
    sum += bytes;
    if (sum > bytesMax) await rm(file, { force: true });
  }
}

// Each address is checked like that of a repository; headers are sent only to the address that they were given for.
async function openDownload(server: LfsServer, { href, headers }: Download, ctx: DriverContext): Promise<WebResponse> {
  const first = await resolveWebEndpoint(href, server.rules, ctx);
  const isSigned = Object.keys(headers).some((name) => name.toLowerCase() === 'authorization');
  const hop = { url: new URL(first.address), method: 'GET' as const, headers };
  return requestLfs(server.rules, hop, ctx, (endpoint, { headers: given }) => ({
    headers: { 'Accept-Encoding': 'identity', ...(!isSigned && server.authorizationFor(endpoint)), ...given },
  }));
}

/** Returns the digest. Bytes beyond the declared size are not written. */
async function save({ response }: WebResponse, file: string, size: number, host: string): Promise<string> {
  const target = await newFileStream(file);
  const hash = createHash('sha256');
  let bytes = 0;
  const judge = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      bytes += chunk.length;
      if (bytes > size) return done(new Error('longer than its pointer says'));
      hash.update(chunk);
      done(null, chunk);
    },
  });
  try {
    await pipeline(response, judge, target);
  } catch (error) {
    if (isFetchDiskFull(error)) throw error;
    if (bytes > size)
      throw new SourceError('refused', `The host ${host} sent a large file that is longer than it should be.`);
    throw new SourceError('unreachable', `The host ${host} broke off a large file (Git LFS). Try again later.`);
  }
  return hash.digest('hex');
}

function damaged(host: string, oid: string): SourceError {
  const short = oid.slice(0, 12);
  return new SourceError('refused', `The host ${host} sent the large file ${short} (Git LFS) damaged. Push it again.`);
}
