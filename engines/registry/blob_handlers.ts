// Layers: download, deletion, and upload: monolithic, chunked or by mounting.
import { parseByteRange, type ByteRange } from '../../core/protocols/byte_range';
import { sendFile } from '../../core/files/send_file';
import { RegistryError } from './errors';
import { respond, type Exchange, type Handler } from './exchange';
import { isDigest, requireDigest } from './routes';

export const getBlob: Handler = async ({ request, response, content, blobs, registry }, reference) => {
  const digest = requireDigest(reference);
  const size = (await content.blob(registry.id, digest)) === null ? null : await blobs.size(digest);
  if (size === null) throw new RegistryError('BLOB_UNKNOWN', 'The registry has no layer of this digest.');
  const headers = {
    'Content-Type': 'application/octet-stream',
    'Docker-Content-Digest': digest,
    ETag: `"${digest}"`,
    'Accept-Ranges': 'bytes',
    'Cache-Control': 'max-age=31536000',
  };
  if (request.method === 'HEAD') return respond(response, 200, { ...headers, 'Content-Length': size });
  const range = requireRange(request.headers.range, size);
  const [start, end] = range ? [range.start, range.end + 1] : [0, size];
  const file = await blobs.open(digest);
  try {
    response.writeHead(range ? 206 : 200, {
      ...headers,
      'Content-Length': end - start,
      ...(range && { 'Content-Range': `bytes ${range.start}-${range.end}/${size}` }),
    });
    await sendFile(response, file, { start, end }, 'end');
  } finally {
    file.release();
  }
};

/** @throws SIZE_INVALID with 416 */
function requireRange(header: string | undefined, size: number): ByteRange | null {
  const range = parseByteRange(header, size);
  if (typeof range !== 'string') return range;
  throw new RegistryError('SIZE_INVALID', 'The range lies beyond the layer.', {
    status: 416,
    headers: { 'Content-Range': `bytes */${size}` },
  });
}

export const deleteBlob: Handler = async ({ response, content, registry }, reference) => {
  const outcome = await content.deleteBlob(registry.id, requireDigest(reference));
  if (outcome === 'unknown') throw new RegistryError('BLOB_UNKNOWN', 'The registry has no layer of this digest.');
  if (outcome === 'in_use') throw new RegistryError('DENIED', 'An image needs the layer. Delete the image first.');
  respond(response, 202);
};

/** `mount` links an existing layer, `digest` uploads in one request, otherwise an upload session begins. */
export const startUpload: Handler = async (exchange) => {
  const { request, response, query, content, uploads, registry, repository } = exchange;
  const mounted = query.get('mount');
  if (mounted !== null && isDigest(mounted) && isOfSameRegistry(exchange, query.get('from'))) {
    if ((await content.blob(registry.id, mounted)) !== null) return created(exchange, mounted);
  }
  requireRoom(exchange, Number(request.headers['content-length'] ?? 0));
  const id = await content.startUpload(registry.id, repository);
  await uploads.create(id);
  const digest = query.get('digest');
  if (digest !== null) return finish(exchange, id, digest);
  respond(response, 202, progressHeaders(exchange, id, 0));
};

/** Permissions are granted per registry: a layer of another registry must be uploaded. */
function isOfSameRegistry({ name }: Exchange, from: string | null): boolean {
  return from === null || from.split('/')[0] === name.split('/')[0];
}

export const getUpload: Handler = async (exchange, id) => {
  const offset = await requireUpload(exchange, id);
  respond(exchange.response, 204, progressHeaders(exchange, id, offset));
};

export const appendChunk: Handler = async (exchange, id) => {
  const offset = await requireUpload(exchange, id);
  requireNextChunk(exchange, id, offset);
  const end = await exchange.uploads.append(id, exchange.request, exchange.sizeMax - exchange.registry.size_bytes);
  respond(exchange.response, 202, progressHeaders(exchange, id, end));
};

export const finishUpload: Handler = async (exchange, id) => {
  const offset = await requireUpload(exchange, id);
  requireNextChunk(exchange, id, offset);
  await finish(exchange, id, exchange.query.get('digest'));
};

export const cancelUpload: Handler = async (exchange, id) => {
  await requireUpload(exchange, id);
  await exchange.content.endUpload(id);
  await exchange.uploads.remove(id);
  respond(exchange.response, 204);
};

async function finish(exchange: Exchange, id: string, wanted: string | null): Promise<void> {
  const { request, content, uploads, blobs, registry, sizeMax } = exchange;
  const digest = requireDigest(wanted);
  await uploads.append(id, request, sizeMax - registry.size_bytes);
  const { file, size } = await uploads.finish(id, digest);
  const isAdded = await content.addBlob(registry.id, { digest, size, sizeMax, upload: id }, () =>
    blobs.place(file, digest),
  );
  if (!isAdded) throw noRoom();
  created(exchange, digest);
}

function created({ response, name }: Exchange, digest: string): void {
  respond(response, 201, { Location: `/v2/${name}/blobs/${digest}`, 'Docker-Content-Digest': digest });
}

async function requireUpload({ content, uploads, registry, repository }: Exchange, id: string): Promise<number> {
  const isKnown = /^[0-9a-z_]{1,40}$/.test(id) && (await content.hasUpload(registry.id, repository, id));
  const offset = isKnown ? await uploads.offset(id) : null;
  if (offset === null) throw new RegistryError('BLOB_UPLOAD_UNKNOWN', 'There is no such upload. Start a new one.');
  return offset;
}

/** @throws BLOB_UPLOAD_INVALID with 416 for a chunk that does not start at the current offset */
function requireNextChunk(exchange: Exchange, id: string, offset: number): void {
  const header = exchange.request.headers['content-range'];
  if (header === undefined) return;
  const [, start] = /^(?:bytes )?(\d+)-(\d+)$/.exec(header) ?? [];
  if (start !== undefined && Number(start) === offset) return;
  throw new RegistryError('BLOB_UPLOAD_INVALID', `The next chunk must begin at ${offset}.`, {
    status: 416,
    headers: progressHeaders(exchange, id, offset),
  });
}

/** @throws DENIED where the registry would exceed its size limit */
function requireRoom({ registry, sizeMax }: Exchange, more: number): void {
  if (registry.size_bytes + more > sizeMax) throw noRoom();
}

function noRoom(): RegistryError {
  return new RegistryError(
    'DENIED',
    'The registry has reached its maximum size. Delete images, or ask the operator to raise `REGISTRY_SIZE_GB`.',
  );
}

function progressHeaders({ name }: Exchange, id: string, offset: number): Record<string, string> {
  return {
    Location: `/v2/${name}/blobs/uploads/${id}`,
    // The range includes its end; clients also read 0-0 as empty.
    Range: `0-${Math.max(0, offset - 1)}`,
    'Docker-Upload-UUID': id,
  };
}
