// Settings of object storage: the embedded S3 endpoint, or a gateway.
import { addresses, hostname, httpUrlSetting, integer, text } from '../setting_types';

export const objectStorageSettings = {
  S3_PORT: integer({
    default: '9000',
    min: 0,
    max: 65535,
    description: 'Port of the embedded S3 endpoint. 0 switches object storage off.',
  }),
  S3_LISTEN: addresses({
    default: '127.0.0.1',
    description: 'Addresses on which the embedded S3 endpoint listens, separated by commas.',
  }),
  S3_URL: httpUrlSetting({
    default: null,
    derived: 'http://127.0.0.1 and S3_PORT',
    description: 'URL at which clients reach the S3 endpoint, for example that of a proxy with TLS.',
  }),
  S3_DOMAIN: hostname({
    default: null,
    derived: 's3. and APPS_DOMAIN',
    description: 'Domain below which buckets have host names of their own (virtual-hosted style).',
  }),
  S3_WEBSITE_DOMAIN: hostname({
    default: null,
    derived: 'web. and S3_DOMAIN',
    description: 'Domain below which the websites of buckets have their host names.',
  }),
  RGW_URL: httpUrlSetting({
    default: null,
    description:
      'Address of a Ceph RADOS Gateway. Set: it keeps buckets, keys and objects, and the embedded S3 endpoint is off.',
  }),
  RGW_ACCESS_KEY: text({
    default: null,
    description: 'Access key of its user with the capabilities users=*, buckets=* and usage=read.',
  }),
  RGW_SECRET_KEY: text({
    default: null,
    secret: true,
    description: 'Secret of that key.',
  }),
  RGW_USER_PREFIX: text({
    default: 'platform-',
    description: 'Prefix of the names of the gateway users that belong to this installation.',
  }),
};
