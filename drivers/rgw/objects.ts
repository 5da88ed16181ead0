// Lists the objects of a bucket at the gateway, for the console.
import { GROUP, type ListedObject, type ObjectsQuestion } from '../../core/protocols/objects';
import type { Credentials } from '../../core/protocols/sigv4';
import type { DriverContext } from '../../core/driver';
import { parseXml, elementText, type XmlNode } from '../../engines/object_storage';
import { rgwError, type RgwApi } from './api';

const ROWS = ['Contents', 'Version', 'DeleteMarker', 'CommonPrefixes'];

/** @throws DriverError */
export async function listRgwObjects(
  api: RgwApi,
  bucket: { name: string; owner: Credentials },
  question: ObjectsQuestion,
  ctx: DriverContext,
): Promise<ListedObject[]> {
  const { prefix, delimiter, versions, after, limit } = question;
  const query = {
    ...{ prefix, 'max-keys': limit, 'encoding-type': 'url', ...(delimiter !== null && { delimiter }) },
    ...(versions && { versions: '' }),
    ...(after && (versions ? { 'key-marker': after.key } : { marker: after.key })),
    ...(after && versions && after.position !== GROUP && { 'version-id-marker': after.position }),
  };
  const answer = await api.s3(bucket.owner, 'GET', `/${bucket.name}`, query, ctx);
  // The bucket was not created by the reconcile loop yet.
  if (answer.code === 'NoSuchBucket' || answer.code === 'InvalidAccessKeyId') return [];
  if (answer.status >= 400) throw rgwError(answer);
  const rows = parseXml(answer.text, versions ? 'ListVersionsResult' : 'ListBucketResult').children;
  const listed = rows.filter(({ name }) => ROWS.includes(name)).map(toListed);
  // Groups stand behind the objects of a page.
  return listed.sort((a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)));
}

function toListed(node: XmlNode): ListedObject {
  if (node.name === 'CommonPrefixes')
    return {
      ...{ type: 'prefix', key: decoded(elementText(node, 'Prefix')), position: GROUP },
      ...{ size_bytes: null, etag: null, last_modified_at: null, version_id: null },
    };
  const isMarker = node.name === 'DeleteMarker';
  const version = elementText(node, 'VersionId') ?? 'null';
  const modified = elementText(node, 'LastModified');
  return {
    type: isMarker ? 'delete_marker' : 'object',
    key: decoded(elementText(node, 'Key')),
    size_bytes: isMarker ? null : Number(elementText(node, 'Size')),
    etag: isMarker ? null : (elementText(node, 'ETag') ?? '').replaceAll('"', ''),
    last_modified_at: modified ? new Date(modified).toISOString() : null,
    version_id: version === 'null' ? null : version,
    position: version,
  };
}

function decoded(text: string | undefined): string {
  return decodeURIComponent((text ?? '').replaceAll('+', '%20'));
}
