// DeleteObject and DeleteObjects, including conditional deletes.
import type { Deletion, DeletionConditions } from '../../core/protocols/objects';
import { mayDo, requireGranted, type Exchange, type ObjectExchange } from './endpoint_context';
import { refusalError, S3Error } from './errors';
import { bypassesGovernance } from './settings/object_lock';
import { headerOf } from './request';
import { sendEmpty, sendXml } from './respond';
import { receiveText } from './upload';
import { childElements, parseXml, elementText, requireMembers, type XmlNode } from './xml';

const XML_BYTES_MAX = 2 * 2 ** 20;
const DELETIONS_MAX = 1000;

/** Objects whose condition fails are kept. A malformed condition rejects the whole request. */
export async function deleteObject(exchange: ObjectExchange): Promise<void> {
  const { bucket, catalog, key, versionId, request } = exchange;
  requireGranted(exchange, versionId ? 's3:DeleteObjectVersion' : 's3:DeleteObject', key);
  const conditions = conditionsOf({
    etag: headerOf(request, 'if-match'),
    size: headerOf(request, 'x-amz-if-match-size'),
    modified: headerOf(request, 'x-amz-if-match-last-modified-time'),
  });
  const bypass_governance = bypassesGovernance(exchange, key);
  const [done] = await catalog.delete(bucket.id, [{ key, version_id: versionId, ...conditions, bypass_governance }]);
  if (done?.refusal) throw refusalError(done.refusal);
  exchange.wakeSweep();
  sendEmpty(exchange, 204, {
    ...(done?.is_delete_marker && { 'x-amz-delete-marker': 'true' }),
    ...(done?.version_id && done.version_id !== 'null' && { 'x-amz-version-id': done.version_id }),
  });
}

/** POST ?delete: up to 1000 keys. Rejected deletions are reported, the others run in one transaction. */
export async function deleteObjects(exchange: Exchange): Promise<void> {
  const { bucket, catalog } = exchange;
  const document = parseXml(await receiveText(exchange, XML_BYTES_MAX), 'Delete');
  const { wanted, isQuiet } = deletionsOf(document);
  const allowed = wanted.filter(({ key, version_id }) =>
    mayDo(exchange, version_id ? 's3:DeleteObjectVersion' : 's3:DeleteObject', key),
  );
  const given = allowed.map((one) => ({ ...one, bypass_governance: bypassesGovernance(exchange, one.key) }));
  const done = given.length ? await catalog.delete(bucket.id, given) : [];
  exchange.wakeSweep();
  const refused = new Map<Deletion, S3Error>();
  for (const one of wanted) if (!allowed.includes(one)) refused.set(one, new S3Error('AccessDenied'));
  for (const [index, one] of allowed.entries()) {
    const refusal = done[index]?.refusal;
    if (refusal) refused.set(one, refusalError(refusal));
  }
  const Deleted = allowed.flatMap((one, index) => {
    if (isQuiet || refused.has(one)) return [];
    const marker = done[index]?.is_delete_marker && {
      DeleteMarker: true,
      DeleteMarkerVersionId: done[index].version_id,
    };
    return [{ Key: one.key, VersionId: one.version_id, ...marker }];
  });
  const errors = [...refused].map(([{ key, version_id }, { code, message }]) => ({
    ...{ Key: key, VersionId: version_id, Code: code, Message: message },
  }));
  sendXml(exchange, 'DeleteResult', { Deleted, Error: errors });
}

/** @throws S3Error MalformedXML, NotImplemented */
function deletionsOf(document: XmlNode): { wanted: Deletion[]; isQuiet: boolean } {
  requireMembers(document, ['Object', 'Quiet'], ['Object']);
  const quiet = elementText(document, 'Quiet') ?? 'false';
  const wanted = childElements(document, 'Object').map((node): Deletion => {
    requireMembers(node, ['Key', 'VersionId', 'ETag', 'LastModifiedTime', 'Size']);
    return {
      key: elementText(node, 'Key') ?? '',
      version_id: elementText(node, 'VersionId') ?? null,
      ...conditionsOf({
        etag: elementText(node, 'ETag'),
        size: elementText(node, 'Size'),
        modified: elementText(node, 'LastModifiedTime'),
      }),
    };
  });
  if (
    !wanted.length ||
    wanted.length > DELETIONS_MAX ||
    wanted.some(({ key }) => !key) ||
    !/^(true|false)$/.test(quiet)
  )
    throw new S3Error('MalformedXML');
  return { wanted, isQuiet: quiet === 'true' };
}

type Given = Record<'etag' | 'size' | 'modified', string | undefined>;

/** @throws S3Error InvalidArgument for values that no object can have */
function conditionsOf({ etag, size, modified }: Given): { conditions?: DeletionConditions } {
  if (etag === undefined && size === undefined && modified === undefined) return {};
  if (size !== undefined && !/^\d{1,15}$/.test(size)) throw new S3Error('InvalidArgument', 'The size is not a number.');
  const ms = modified === undefined ? 0 : Date.parse(modified);
  if (Number.isNaN(ms)) throw new S3Error('InvalidArgument', 'The time of the last modification is not a time.');
  return {
    conditions: {
      ...(etag !== undefined && { etag: etag.trim().replace(/^"|"$/g, '') }),
      ...(size !== undefined && { size: Number(size) }),
      ...(modified !== undefined && { modified_at: new Date(Math.floor(ms / 1000) * 1000).toISOString() }),
    },
  };
}
