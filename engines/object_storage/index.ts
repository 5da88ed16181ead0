// The door of the object storage: all that other rooms and engines may import of it.
export type { ObjectCatalog, ServedBucket, ServedKey } from './catalog';
export { openEndpoint } from './endpoint';
export { S3Error } from './errors';
export { openBlobStore, reencryptFiles, type BlobStore } from './files/blobs';
export { bucketDirectories } from './files/directories';
export type {
  AccessKeyDriver,
  AccessKeySpec,
  BucketDriver,
  BucketObserved,
  BucketSpec,
  CorsRule,
  ObjectStorage,
} from './object_storage';
export type { S3Client } from './request';
export { corsElements, corsRule } from './settings/bucket_settings';
export { lifecycleElements, lifecycleRule } from './settings/lifecycle_settings';
export { childElements, elementText, parseXml, xmlDocument, type XmlNode } from './xml';
