// What conditions of policies know of a request.
import { isListAction, type BucketAction } from '../../core/protocols/buckets/bucket_actions';
import { plainAddress, type ConditionContext } from '../../core/protocols/buckets/policy_conditions';
import { headerOf, queryOf, type S3Request } from './request';

/** What a request gives for the keys of conditions. */
export function conditionContext(request: S3Request, action: BucketAction): ConditionContext {
  return (key) => {
    switch (key) {
      case 'aws:sourceip':
        return plainAddress(request.client.address);
      case 'aws:securetransport':
        return String(request.client.isSecure);
      case 'aws:referer':
        return headerOf(request, 'referer');
      case 'aws:useragent':
        return headerOf(request, 'user-agent');
      case 's3:prefix':
      case 's3:delimiter':
        return isListAction(action) ? queryOf(request, key.slice('s3:'.length)) : undefined;
      default:
        return headerOf(request, key.slice('s3:'.length)) ?? ofUpload(request, key);
    }
  };
}

/** Parts and completions have what their upload was created with, as at Amazon S3. */
function ofUpload({ upload }: S3Request, key: string): string | undefined {
  switch (key) {
    case 's3:x-amz-acl':
      return upload?.acl;
    case 's3:x-amz-server-side-encryption':
      return upload?.metadata.encryption ?? undefined;
    default:
      return upload?.metadata.customer_key ? 'AES256' : undefined;
  }
}
