// Settings of the CDN cache, in the process with INGRESS_PORT.
import { hostname, integer } from '../setting_types';

export const cdnSettings = {
  CDN_DOMAIN: hostname({
    default: null,
    derived: 'cdn. and APPS_DOMAIN',
    description: 'Domain below which CDN zones get their host names.',
  }),
  CDN_SIZE_GB: integer({
    default: '10',
    min: 1,
    max: 1_000_000,
    description:
      'Limit of all cached objects of CDN zones in gigabytes. Least recently used objects are evicted ' + 'first.',
  }),
};
