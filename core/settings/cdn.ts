// Settings of the CDN cache, in the process with INGRESS_PORT.
import { hostname, integer, path } from '../setting_types';

export const cdnSettings = {
  CDN_DOMAIN: hostname({
    default: null,
    derived: 'cdn. and APPS_DOMAIN',
    description: 'Domain below which CDN zones get their host names.',
  }),
  CDN_DIR: path({
    default: null,
    derived: 'cdn in the data directory',
    description: 'Directory of the objects that CDN zones have cached.',
  }),
  CDN_SIZE_GB: integer({
    default: '10',
    min: 1,
    max: 1_000_000,
    description:
      'Limit of all cached objects of CDN zones in gigabytes. Least recently used objects are evicted ' + 'first.',
  }),
  CDN_OBJECTS: integer({
    default: '250000',
    min: 1,
    max: 100_000_000,
    description: 'Maximum number of cached objects of CDN zones. Each takes about 2 KB of memory.',
  }),
  CDN_MEMORY_MB: integer({
    default: '64',
    min: 0,
    max: 1_000_000,
    description: 'Megabytes of memory for small objects that were requested recently.',
  }),
  CDN_OBJECT_MB: integer({
    default: '1024',
    min: 1,
    max: 1_000_000,
    description: 'Maximum size of a cached object in megabytes. Larger objects are passed through.',
  }),
};
