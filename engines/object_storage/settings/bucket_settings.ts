// Bucket settings over S3, stored in the same rows as by the API.
import { formats } from '../../../core/formats/formats';
import type { CorsRule } from '../object_storage';
import { requireGranted, type Exchange } from '../endpoint_context';
import { S3Error } from '../errors';
import { sendPlainText, sendXml } from '../respond';
import { receiveText } from '../upload';
import { absentSettings } from './absent_settings';
import { aclOf, receivedAccess } from './acl';
import { changeBucketSettings } from './change_settings';
import { getLockConfiguration, putLockConfiguration } from './object_lock';
import {
  deleteOwnershipControls,
  deletePublicAccessBlock,
  getOwnershipControls,
  getPublicAccessBlock,
  putOwnershipControls,
  putPublicAccessBlock,
} from './public_access';
import { getLifecycle, putLifecycle, requireRules } from './lifecycle_settings';
import { deletePolicy, getPolicy, getPolicyStatus, putPolicy } from './policy_settings';
import {
  childElement,
  childElements,
  parseXml,
  elementText,
  requireMembers,
  type XmlElements,
  type XmlNode,
} from '../xml';

const XML_BYTES_MAX = 64 * 1024;
const METHODS = ['GET', 'PUT', 'POST', 'DELETE', 'HEAD'];
/** Default of rules without a max age, same as in the API. */
const CORS_MAX_AGE_SECONDS = 3600;
const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/;
// As permissive as S3. The API is stricter, for example about origins without a scheme, which browsers never send.
const isOrigin = (text: string): boolean => /^[!-~]{1,255}$/.test(text) && text.split('*').length <= 2;

type Handler = (exchange: Exchange) => Promise<void> | void;

/** By query parameter and method. */
export const bucketSettings: Record<string, Partial<Record<string, Handler>>> = {
  location: { GET: getLocation },
  versioning: { GET: getVersioning, PUT: putVersioning },
  cors: {
    GET: getCors,
    PUT: putCors,
    DELETE: (exchange) => changeBucketSettings(exchange, 's3:PutBucketCORS', { cors: [] }, 204),
  },
  lifecycle: {
    GET: getLifecycle,
    PUT: putLifecycle,
    DELETE: (exchange) => changeBucketSettings(exchange, 's3:PutLifecycleConfiguration', { lifecycle: [] }, 204),
  },
  policy: {
    GET: getPolicy,
    PUT: putPolicy,
    DELETE: deletePolicy,
  },
  website: {
    GET: getWebsite,
    PUT: putWebsite,
    DELETE: (exchange) => changeBucketSettings(exchange, 's3:DeleteBucketWebsite', { website: null }, 204),
  },
  acl: { GET: getAcl, PUT: putAcl },
  'object-lock': { GET: getLockConfiguration, PUT: putLockConfiguration },
  publicAccessBlock: { GET: getPublicAccessBlock, PUT: putPublicAccessBlock, DELETE: deletePublicAccessBlock },
  ownershipControls: { GET: getOwnershipControls, PUT: putOwnershipControls, DELETE: deleteOwnershipControls },
  policyStatus: { GET: getPolicyStatus },
  ...absentSettings,
};

function getLocation(exchange: Exchange): void {
  requireGranted(exchange, 's3:GetBucketLocation', '');
  const { region } = exchange.bucket;
  const text = `<?xml version="1.0" encoding="UTF-8"?>\n<LocationConstraint xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${region}</LocationConstraint>`;
  sendPlainText(exchange.request, 200, text, { 'content-type': 'application/xml' });
}

function getVersioning(exchange: Exchange): void {
  requireGranted(exchange, 's3:GetBucketVersioning', '');
  const { versioning, versioned_at } = exchange.bucket;
  sendXml(exchange, 'VersioningConfiguration', { Status: versioning ? 'Enabled' : versioned_at ? 'Suspended' : null });
}

function putVersioning(exchange: Exchange): Promise<void> {
  return changeBucketSettings(exchange, 's3:PutBucketVersioning', async () => {
    const document = parseXml(await receiveText(exchange, XML_BYTES_MAX), 'VersioningConfiguration');
    requireMembers(document, ['Status', 'MfaDelete']);
    if ((elementText(document, 'MfaDelete') ?? 'Disabled') !== 'Disabled')
      throw new S3Error('NotImplemented', 'MFA delete is not supported.');
    const status = elementText(document, 'Status');
    if (status !== 'Enabled' && status !== 'Suspended') throw new S3Error('MalformedXML');
    if (status === 'Suspended' && exchange.bucket.object_lock) throw new S3Error('InvalidBucketState');
    return { versioning: status === 'Enabled' };
  });
}

function getCors(exchange: Exchange): void {
  requireGranted(exchange, 's3:GetBucketCORS', '');
  const { cors } = exchange.bucket;
  if (!cors.length) throw new S3Error('NoSuchCORSConfiguration');
  sendXml(exchange, 'CORSConfiguration', corsElements(cors));
}

export function corsElements(rules: readonly CorsRule[]): XmlElements {
  return {
    CORSRule: rules.map((rule) => ({
      ...(rule.id !== undefined && { ID: rule.id }),
      ...{ AllowedOrigin: rule.allowed_origins, AllowedMethod: rule.allowed_methods },
      ...{
        AllowedHeader: rule.allowed_headers,
        ExposeHeader: rule.expose_headers,
        MaxAgeSeconds: rule.max_age_implied ? null : rule.max_age_seconds,
      },
    })),
  };
}

function putCors(exchange: Exchange): Promise<void> {
  return changeBucketSettings(exchange, 's3:PutBucketCORS', async () => {
    const document = parseXml(await receiveText(exchange, XML_BYTES_MAX), 'CORSConfiguration');
    requireMembers(document, ['CORSRule'], ['CORSRule']);
    return { cors: requireRules(childElements(document, 'CORSRule')).map(corsRule) };
  });
}

export function corsRule(node: XmlNode): CorsRule {
  const lists = ['AllowedOrigin', 'AllowedMethod', 'AllowedHeader', 'ExposeHeader'];
  requireMembers(node, ['ID', 'MaxAgeSeconds', ...lists], lists);
  const all = (name: string): string[] => childElements(node, name).map(({ text }) => text);
  const [allowed_origins, allowed_methods] = [all('AllowedOrigin'), all('AllowedMethod')];
  const id = elementText(node, 'ID');
  const ageText = elementText(node, 'MaxAgeSeconds');
  const age = ageText === undefined ? CORS_MAX_AGE_SECONDS : /^\d{1,5}$/.test(ageText) ? Number(ageText) : NaN;
  const isValid =
    allowed_origins.length > 0 &&
    allowed_origins.length <= 20 &&
    allowed_origins.every(isOrigin) &&
    allowed_methods.length > 0 &&
    allowed_methods.every((method) => METHODS.includes(method)) &&
    [...all('AllowedHeader'), ...all('ExposeHeader')].every((name) => HEADER_NAME.test(name)) &&
    (id ?? '').length <= 255 &&
    formats.single_line(id ?? '') !== null &&
    Number.isInteger(age) &&
    age >= 0 &&
    age <= 86_400;
  if (!isValid)
    throw new S3Error('InvalidRequest', 'A CORS rule has an invalid origin, method, header name or MaxAgeSeconds.');
  return {
    ...(id && { id }),
    allowed_origins,
    allowed_methods,
    allowed_headers: all('AllowedHeader'),
    expose_headers: all('ExposeHeader'),
    max_age_seconds: age,
    ...(ageText === undefined && { max_age_implied: true as const }),
  };
}

function getWebsite(exchange: Exchange): void {
  requireGranted(exchange, 's3:GetBucketWebsite', '');
  const { website } = exchange.bucket;
  if (!website) throw new S3Error('NoSuchWebsiteConfiguration');
  const { index_document, error_document } = website;
  sendXml(exchange, 'WebsiteConfiguration', {
    IndexDocument: { Suffix: index_document },
    ErrorDocument: error_document ? { Key: error_document } : null,
  });
}

function putWebsite(exchange: Exchange): Promise<void> {
  return changeBucketSettings(exchange, 's3:PutBucketWebsite', async () => {
    const document = parseXml(await receiveText(exchange, XML_BYTES_MAX), 'WebsiteConfiguration');
    const index_document = elementText(childElement(document, 'IndexDocument'), 'Suffix') ?? '';
    requireMembers(document, ['IndexDocument', 'ErrorDocument']);
    for (const [name, member] of [
      ['IndexDocument', 'Suffix'],
      ['ErrorDocument', 'Key'],
    ] as const) {
      const child = childElement(document, name);
      if (child) requireMembers(child, [member]);
    }
    if (!/^[^/]{1,255}$/.test(index_document) || formats.single_line(index_document) === null)
      throw new S3Error('InvalidArgument', 'The suffix of the index document is not valid.');
    if (exchange.bucket.access !== 'public_read')
      throw new S3Error('InvalidRequest', 'A website needs a bucket that is public_read.');
    return {
      website: { index_document, error_document: elementText(childElement(document, 'ErrorDocument'), 'Key') || null },
    };
  });
}

function getAcl(exchange: Exchange): void {
  requireGranted(exchange, 's3:GetBucketAcl', '');
  sendXml(exchange, 'AccessControlPolicy', aclOf(exchange, exchange.bucket.access === 'public_read'));
}

function putAcl(exchange: Exchange): Promise<void> {
  return changeBucketSettings(exchange, 's3:PutBucketAcl', async () => {
    const access = await receivedAccess(exchange);
    if (access === 'private' && exchange.bucket.website)
      throw new S3Error('InvalidRequest', 'The bucket is served as a website.');
    return { access };
  });
}
