// Object lock (Amazon S3 User Guide, "Locking objects with Object Lock"): retention and legal hold of versions, and the
// default retention of a bucket. The database stores locks and enforces them.
import { formats } from '../../../core/formats/formats';
import type { DefaultRetention, ObjectLock, RetentionMode, StoredObject } from '../../../core/protocols/objects';
import { changeBucketSettings } from './change_settings';
import { mayDo, requireGranted, type Exchange, type ObjectExchange } from '../endpoint_context';
import { S3Error } from '../errors';
import { headerOf } from '../request';
import { sendEmpty, sendXml } from '../respond';
import { receiveText } from '../upload';
import { childElement, elementText, parseXml, requireMembers, type XmlNode } from '../xml';

const XML_BYTES_MAX = 64 * 1024;
const DAYS_MAX = 36_500;
const YEARS_MAX = 100;
/** A later date is considered a mistake, since compliance retention cannot be shortened. */
const RETAIN_YEARS_MAX = 1000;
const MODES: ReadonlyMap<string, RetentionMode> = new Map([
  ['GOVERNANCE', 'governance'],
  ['COMPLIANCE', 'compliance'],
]);
const HEADER = 'x-amz-object-lock-';

/** Lock headers of a request that creates an object. @throws S3Error */
export function lockOfHeaders(exchange: ObjectExchange): Partial<ObjectLock> {
  const { request, bucket, key } = exchange;
  const of = (name: string): string | undefined => headerOf(request, HEADER + name);
  const [mode, until, hold] = [of('mode'), of('retain-until-date'), of('legal-hold')];
  if (mode === undefined && until === undefined && hold === undefined) return {};
  if ((mode === undefined) !== (until === undefined))
    throw new S3Error('InvalidArgument', `${HEADER}mode and ${HEADER}retain-until-date must be sent together.`);
  if (mode !== undefined) requireGranted(exchange, 's3:PutObjectRetention', key);
  if (hold !== undefined) requireGranted(exchange, 's3:PutObjectLegalHold', key);
  requireLockable(bucket);
  return {
    ...(mode !== undefined && { retain_mode: MODES.get(mode.toUpperCase()), retain_until: timeOf(until) }),
    ...(hold !== undefined && { legal_hold: hold.toUpperCase() === 'ON' }),
  };
}

/** Lock headers of an object, as far as the caller may see them. */
export function lockHeaders(exchange: ObjectExchange, object: StoredObject): Record<string, string> {
  const { retain_mode, retain_until, legal_hold } = object;
  const isRetained = retain_mode !== null && retain_until !== null;
  if (!isRetained && legal_hold === null) return {};
  return {
    ...(isRetained &&
      mayDo(exchange, 's3:GetObjectRetention', object.key) && {
        [`${HEADER}mode`]: retain_mode.toUpperCase(),
        [`${HEADER}retain-until-date`]: retain_until,
      }),
    ...(legal_hold !== null &&
      mayDo(exchange, 's3:GetObjectLegalHold', object.key) && { [`${HEADER}legal-hold`]: legal_hold ? 'ON' : 'OFF' }),
  };
}

/** Whether the caller requests a bypass of governance retention, and has the permission. */
export function bypassesGovernance(exchange: Exchange, key: string): boolean {
  const isRequested = headerOf(exchange.request, 'x-amz-bypass-governance-retention')?.toLowerCase() === 'true';
  return isRequested && mayDo(exchange, 's3:BypassGovernanceRetention', key);
}

export function getLockConfiguration(exchange: Exchange): void {
  requireGranted(exchange, 's3:GetBucketObjectLockConfiguration', '');
  const { object_lock, default_retention: retention } = exchange.bucket;
  if (!object_lock) throw new S3Error('ObjectLockConfigurationNotFoundError');
  const { mode, days, years } = retention ?? {};
  sendXml(exchange, 'ObjectLockConfiguration', {
    ObjectLockEnabled: 'Enabled',
    Rule: mode ? { DefaultRetention: { Mode: mode.toUpperCase(), Days: days, Years: years } } : null,
  });
}

/** Also enables object lock on a versioned bucket. It cannot be disabled. */
export function putLockConfiguration(exchange: Exchange): Promise<void> {
  return changeBucketSettings(exchange, 's3:PutBucketObjectLockConfiguration', async () => {
    const document = parseXml(await receiveText(exchange, XML_BYTES_MAX), 'ObjectLockConfiguration');
    requireMembers(document, ['ObjectLockEnabled', 'Rule']);
    if (elementText(document, 'ObjectLockEnabled') !== 'Enabled')
      throw new S3Error('MalformedXML', 'ObjectLockEnabled can only be Enabled.');
    const rule = childElement(document, 'Rule');
    const default_retention = rule ? defaultRetentionOf(rule) : null;
    if (!exchange.bucket.versioning)
      throw new S3Error('InvalidBucketState', 'Object lock needs a bucket whose versioning is on.');
    return { object_lock: true, default_retention };
  });
}

/** @throws S3Error MalformedXML, InvalidRetentionPeriod */
function defaultRetentionOf(rule: XmlNode): DefaultRetention {
  requireMembers(rule, ['DefaultRetention']);
  const node = childElement(rule, 'DefaultRetention');
  if (!node) throw new S3Error('MalformedXML', 'A rule must have a default retention.');
  requireMembers(node, ['Mode', 'Days', 'Years']);
  const mode = MODES.get(elementText(node, 'Mode') ?? '');
  const [days, years] = [elementText(node, 'Days'), elementText(node, 'Years')];
  if (!mode || (days === undefined) === (years === undefined))
    throw new S3Error('MalformedXML', 'A default retention must have a mode, and either days or years.');
  const period = (text: string | undefined, max: number): number | null => {
    if (text === undefined) return null;
    if (!/^\d{1,5}$/.test(text) || Number(text) < 1 || Number(text) > max) throw new S3Error('InvalidRetentionPeriod');
    return Number(text);
  };
  return { mode, days: period(days, DAYS_MAX), years: period(years, YEARS_MAX) };
}

export async function getRetention(exchange: ObjectExchange): Promise<void> {
  requireGranted(exchange, 's3:GetObjectRetention', exchange.key);
  const { retain_mode, retain_until } = await requireLockableObject(exchange);
  if (!retain_mode) throw new S3Error('NoSuchObjectLockConfiguration');
  sendXml(exchange, 'Retention', { Mode: retain_mode.toUpperCase(), RetainUntilDate: retain_until });
}

/** An empty document removes the retention, except compliance retention that has not expired. */
export async function putRetention(exchange: ObjectExchange): Promise<void> {
  const { bucket, catalog, key } = exchange;
  requireGranted(exchange, 's3:PutObjectRetention', key);
  const object = await requireLockableObject(exchange);
  const document = parseXml(await receiveText(exchange, XML_BYTES_MAX), 'Retention');
  requireMembers(document, ['Mode', 'RetainUntilDate']);
  const [mode, until] = [elementText(document, 'Mode'), elementText(document, 'RetainUntilDate')];
  const retain_mode = mode === undefined ? null : MODES.get(mode);
  if (retain_mode === undefined || (mode === undefined) !== (until === undefined))
    throw new S3Error('MalformedXML', 'A retention must have a mode, GOVERNANCE or COMPLIANCE, and a RetainUntilDate.');
  const retain_until = until === undefined ? null : timeOf(until);
  const bypass = bypassesGovernance(exchange, key);
  await catalog.setRetention(bucket.id, object.id, { retain_mode, retain_until, bypass });
  sendEmpty(exchange, 200);
}

export async function getHold(exchange: ObjectExchange): Promise<void> {
  requireGranted(exchange, 's3:GetObjectLegalHold', exchange.key);
  const { legal_hold } = await requireLockableObject(exchange);
  if (legal_hold === null) throw new S3Error('NoSuchObjectLockConfiguration');
  sendXml(exchange, 'LegalHold', { Status: legal_hold ? 'ON' : 'OFF' });
}

export async function putHold(exchange: ObjectExchange): Promise<void> {
  requireGranted(exchange, 's3:PutObjectLegalHold', exchange.key);
  const object = await requireLockableObject(exchange);
  const document = parseXml(await receiveText(exchange, XML_BYTES_MAX), 'LegalHold');
  requireMembers(document, ['Status']);
  const status = elementText(document, 'Status');
  if (status !== 'ON' && status !== 'OFF') throw new S3Error('MalformedXML', 'Status must be ON or OFF.');
  await exchange.catalog.setHold(exchange.bucket.id, object.id, status === 'ON');
  sendEmpty(exchange, 200);
}

async function requireLockableObject({ catalog, bucket, key, versionId }: ObjectExchange): Promise<StoredObject> {
  requireLockable(bucket);
  const object = await catalog.find(bucket.id, key, versionId);
  if (!object || (object.is_delete_marker && !versionId)) throw new S3Error(versionId ? 'NoSuchVersion' : 'NoSuchKey');
  if (object.is_delete_marker) throw new S3Error('MethodNotAllowed', 'A delete marker cannot be locked.');
  return object;
}

function requireLockable({ object_lock }: Exchange['bucket']): void {
  if (!object_lock) throw new S3Error('InvalidRequest', 'The bucket has no object lock.');
}

/** @throws S3Error InvalidArgument for an invalid or past time, or one too far in the future */
function timeOf(text: string | undefined): string {
  const ms = Date.parse(formats.timestamp(text ?? '')?.value ?? '');
  if (!(ms > Date.now() && ms < Date.now() + RETAIN_YEARS_MAX * 366 * 86_400_000))
    throw new S3Error(
      'InvalidArgument',
      'The end of a retention must be a time in the future, such as 2031-05-04T03:02:01Z.',
    );
  return new Date(ms).toISOString();
}
