// The bucket policy over S3. The document of the client is stored beside its statements and returned unmodified.
import { isPublicPolicy, policyMistake } from '../../../core/protocols/buckets/bucket_policy';
import { changeBucketSettings } from './change_settings';
import { requireGranted, type Exchange } from '../endpoint_context';
import { S3Error } from '../errors';
import { parsePolicyDocument, policyDocumentOf } from './policy_document';
import { sendEmpty, sendPlainText, sendXml } from '../respond';
import { receiveText } from '../upload';

const POLICY_BYTES_MAX = 20 * 1024;

export function getPolicy(exchange: Exchange): void {
  requireGranted(exchange, 's3:GetBucketPolicy', '');
  const { policy, policy_document, name } = exchange.bucket;
  if (!policy.length) throw new S3Error('NoSuchBucketPolicy');
  const text = policy_document ?? JSON.stringify(policyDocumentOf(policy, name));
  sendPlainText(exchange.request, 200, text, { 'content-type': 'application/json' });
}

export async function putPolicy(exchange: Exchange): Promise<void> {
  requireGranted(exchange, 's3:PutBucketPolicy', '');
  const { project_id, name } = exchange.bucket;
  const policy_document = await receiveText(exchange, POLICY_BYTES_MAX);
  const policy = parsePolicyDocument(policy_document, name);
  const principals = await exchange.catalog.principalsOf(project_id);
  const mistake = policyMistake(policy, { bucket: name, principals });
  if (mistake) throw new S3Error('MalformedPolicy', mistake);
  if (exchange.bucket.public_access_block?.block_public_policy && isPublicPolicy(policy))
    throw new S3Error('AccessDenied', 'The bucket blocks public policies (BlockPublicPolicy).');
  await exchange.catalog.changeBucket(exchange.bucket, { policy, policy_document });
  sendEmpty(exchange, 204);
}

export function deletePolicy(exchange: Exchange): Promise<void> {
  return changeBucketSettings(exchange, 's3:DeleteBucketPolicy', { policy: [], policy_document: null }, 204);
}

export function getPolicyStatus(exchange: Exchange): void {
  requireGranted(exchange, 's3:GetBucketPolicyStatus', '');
  const { access, policy } = exchange.bucket;
  sendXml(exchange, 'PolicyStatus', { IsPublic: access === 'public_read' || isPublicPolicy(policy) });
}
