// Lists of multipart uploads and of their parts.
import { uriEncodePath } from '../../core/protocols/sigv4';
import { requireGranted, type Exchange, type ObjectExchange } from './endpoint_context';
import { encodingOf, bucketOwner } from './lists';
import { PARTS_MAX, requireSameKey, requireUpload } from './multipart';
import { numberInQuery, queryOf } from './request';
import { sendXml } from './respond';
import type { XmlElements } from './xml';

export async function listParts(exchange: ObjectExchange): Promise<void> {
  const { request, bucket, key, catalog } = exchange;
  requireGranted(exchange, 's3:ListMultipartUploadParts', key);
  const upload = await requireUpload(exchange);
  requireSameKey(upload, request);
  const [max, marker] = [
    numberInQuery(request, 'max-parts', 1000, 1000),
    numberInQuery(request, 'part-number-marker', 0, PARTS_MAX),
  ];
  const rest = (await catalog.uploadParts(upload.id)).filter(({ number }) => number > marker);
  const shown = rest.slice(0, max);
  const { checksum_algorithm: algorithm, checksum_type: type } = upload.object.metadata;
  sendXml(exchange, 'ListPartsResult', {
    ...{ Bucket: bucket.name, Key: key, UploadId: upload.id },
    ...{ ...initiatorAndOwner(exchange), StorageClass: 'STANDARD' },
    ...{ PartNumberMarker: marker, NextPartNumberMarker: shown.at(-1)?.number ?? 0, MaxParts: max },
    ...{ IsTruncated: rest.length > shown.length, ChecksumAlgorithm: algorithm, ChecksumType: type },
    Part: shown.map(({ number, size, etag, modified_at, checksums }): XmlElements => ({
      ...{ PartNumber: number, LastModified: modified_at, ETag: `"${etag}"`, Size: size },
      ...Object.fromEntries(Object.entries(checksums).map(([name, value]) => [`Checksum${name}`, value])),
    })),
  });
}

export async function listUploads(exchange: Exchange): Promise<void> {
  const { request, bucket, catalog } = exchange;
  const prefix = queryOf(request, 'prefix') ?? '';
  requireGranted(exchange, 's3:ListBucketMultipartUploads', prefix);
  const encodingType = encodingOf(request);
  const encode = encodingType ? uriEncodePath : (text: string): string => text;
  const max = numberInQuery(request, 'max-uploads', 1000, 1000);
  const marker = queryOf(request, 'key-marker') ?? '';
  const after = { key: marker, position: queryOf(request, 'upload-id-marker') || (marker ? '~' : '') };
  const found = await catalog.listUploads({ bucketId: bucket.id, prefix, delimiter: null, after, limit: max + 1 });
  const shown = found.slice(0, max);
  const last = shown.at(-1);
  const isTruncated = found.length > shown.length;
  sendXml(exchange, 'ListMultipartUploadsResult', {
    ...{
      Bucket: bucket.name,
      EncodingType: encodingType,
      KeyMarker: encode(marker),
      UploadIdMarker: queryOf(request, 'upload-id-marker') ?? '',
      Prefix: encode(prefix),
    },
    ...(isTruncated && { NextKeyMarker: last && encode(last.key), NextUploadIdMarker: last?.id }),
    ...{ MaxUploads: max, IsTruncated: isTruncated },
    Upload: shown.map(({ id, key, created_at }) => ({
      Key: encode(key),
      UploadId: id,
      ...initiatorAndOwner(exchange),
      StorageClass: 'STANDARD',
      Initiated: created_at,
    })),
  });
}

/** Amazon names the account that has initiated an upload; here both are the project. */
function initiatorAndOwner(exchange: Pick<Exchange, 'bucket'>): XmlElements {
  const { Owner } = bucketOwner(exchange);
  return { Initiator: Owner, Owner };
}
