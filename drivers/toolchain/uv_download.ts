// Downloads uv from a Python package index, without pip.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { chmod, mkdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { DriverError, type DriverContext, isDiskFull } from '../../core/driver';
import type { Tool } from '../toolchain';
import { trusted } from '../../core/outbound/client';
import { ArchiveError, downloadArchive, HEAD_WITHIN_MS, unpackArchive } from './module_archive';
import { uvWheel, type PythonSource } from './python_source';

const JSON_PAGE = 'application/vnd.pypi.simple.v1+json';
const PAGE_BYTES_MAX = 64 << 20;

/** Installs it in `prefix`. @throws DriverError */
export async function downloadUv(
  { version }: Tool,
  source: PythonSource,
  { staging, prefix }: { staging: string; prefix: string },
  ctx: DriverContext,
): Promise<void> {
  const wheel = uvWheel(source);
  if (wheel === null) throw new DriverError('unsupported', 'There is no uv for this platform.');
  const file = path.join(staging, 'uv.whl');
  const isThere = await fetchWheel(wheel.file, source, file, ctx.signal).catch((error: unknown) => {
    if (isDiskFull(error)) throw error;
    throw Object.assign(new DriverError('transient', `The Python package index did not send uv ${version}.`), {
      cause: error,
    });
  });
  if (!isThere)
    throw new DriverError('unsupported', `The Python package index has no uv ${version}. PYTHON_INDEX names it.`);
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  if (hash.digest('hex') !== wheel.sha256)
    throw new DriverError(
      'transient',
      `The uv ${version} of the Python package index does not have the expected hash.`,
    );
  const unpacked = path.join(staging, 'wheel');
  await unpackArchive(file, '', unpacked);
  await rm(file);
  await mkdir(path.join(prefix, 'bin'), { mode: 0o755 });
  await rename(path.join(unpacked, `uv-${version}.data/scripts/uv`), path.join(prefix, 'bin/uv'));
  await chmod(path.join(prefix, 'bin/uv'), 0o755);
}

/** false where the index does not have it. */
async function fetchWheel(name: string, { index }: PythonSource, file: string, signal: AbortSignal): Promise<boolean> {
  const { address, headers } = withoutCredentials(`${index.replace(/\/+$/, '')}/uv/`);
  const page = await trusted(address, {
    ...{ signal, headers: { ...headers, accept: `${JSON_PAGE}, text/html;q=0.1` }, redirects: 'followed' },
    ...{ within: { ms: HEAD_WITHIN_MS, of: 'head' }, bodyBytesMax: PAGE_BYTES_MAX },
  });
  if (page.status === 404) return false;
  if (!page.ok) throw new ArchiveError(`The answer has the status ${page.status}.`);
  const text = await page.text();
  const links = page.headers.get('content-type')?.startsWith(JSON_PAGE) ? linksOfJson(text) : linksOfHtml(text);
  const link = links.find(({ filename }) => filename === name);
  if (link === undefined) return false;
  const target = new URL(link.url, page.url);
  // Credentials are for the index only, not for other hosts of its files.
  const own = target.origin === new URL(address).origin ? headers : {};
  return downloadArchive(target.href, file, signal, own);
}

interface Link {
  filename: string;
  url: string;
}

function linksOfJson(text: string): Link[] {
  return (JSON.parse(text) as { files?: Link[] }).files ?? [];
}

function linksOfHtml(text: string): Link[] {
  return [...text.matchAll(/<a\s[^>]*?href\s*=\s*(["'])(.*?)\1[^>]*>\s*([^<]*?)\s*<\/a>/gi)].map(
    ([, , url = '', filename = '']) => ({ url: url.replaceAll('&amp;', '&'), filename }),
  );
}

function withoutCredentials(text: string): { address: string; headers: Record<string, string> } {
  const address = new URL(text);
  const { username, password } = address;
  if (username === '') return { address: text, headers: {} };
  Object.assign(address, { username: '', password: '' });
  const pair = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString('base64');
  return { address: address.href, headers: { authorization: `Basic ${pair}` } };
}
