// GetObjectAttributes: selected metadata of an object, without its content.
import type { ObjectExchange } from './endpoint_context';
import { S3Error } from './errors';
import { findVersion } from './read_object';
import { encryptionOf } from './settings/customer_keys';
import { headerOf, type S3Request } from './request';
import { sendXml } from './respond';
import { versionHeader } from './write_object';
import type { XmlElements } from './xml';

const PARTS_AT_ONCE_MAX = 1000;
const NAMES = ['ETag', 'Checksum', 'ObjectParts', 'StorageClass', 'ObjectSize'];

export async function getAttributes(exchange: ObjectExchange): Promise<void> {
  const object = await findVersion(exchange, 'GetObjectAttributes');
  encryptionOf(object.metadata, exchange.request);
  const requested = attributesOf(exchange.request);
  const { checksum_algorithm, checksum, checksum_type } = object.metadata;
  const parts = object.part_count && requested.includes('ObjectParts') ? await exchange.catalog.partsOf(object.id) : [];
  const marker = numberOf(exchange.request, 'x-amz-part-number-marker', 0);
  const max = Math.min(numberOf(exchange.request, 'x-amz-max-parts', PARTS_AT_ONCE_MAX), PARTS_AT_ONCE_MAX);
  const rest = parts.filter(({ number }) => number > marker);
  const shown = rest.slice(0, max);
  sendXml(
    exchange,
    'GetObjectAttributesResponse',
    {
      ETag: requested.includes('ETag') ? object.etag : null,
      Checksum:
        requested.includes('Checksum') && checksum && checksum_algorithm
          ? { [`Checksum${checksum_algorithm}`]: checksum, ChecksumType: checksum_type }
          : null,
      ObjectParts: parts.length
        ? {
            ...{ PartsCount: parts.length, PartNumberMarker: marker, MaxParts: max },
            ...{ NextPartNumberMarker: shown.at(-1)?.number ?? 0, IsTruncated: rest.length > shown.length },
            Part: shown.map(({ number, size, checksums }): XmlElements => ({
              ...{ PartNumber: number, Size: size },
              ...Object.fromEntries(Object.entries(checksums).map(([name, value]) => [`Checksum${name}`, value])),
            })),
          }
        : null,
      StorageClass: requested.includes('StorageClass') ? 'STANDARD' : null,
      ObjectSize: requested.includes('ObjectSize') ? object.size : null,
    },
    { ...versionHeader(object), 'last-modified': new Date(object.modified_at).toUTCString() },
  );
}

/** @throws S3Error InvalidArgument */
function attributesOf(request: S3Request): string[] {
  const requested = (headerOf(request, 'x-amz-object-attributes') ?? '').split(',').map((name) => name.trim());
  if (requested.some((name) => !NAMES.includes(name)))
    throw new S3Error('InvalidArgument', `x-amz-object-attributes must contain some of ${NAMES.join(', ')}.`);
  return requested;
}

function numberOf(request: S3Request, header: string, usual: number): number {
  const text = headerOf(request, header);
  if (text === undefined) return usual;
  if (!/^\d{1,5}$/.test(text)) throw new S3Error('InvalidArgument', `${header} is not a whole number.`);
  return Number(text);
}
