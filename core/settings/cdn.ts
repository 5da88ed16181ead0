// Settings of the CDN cache, in the process with INGRESS_PORT.
import { hostname, integer, path, resolvers, varnishNodes } from '../setting_types';

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
    description: 'Gigabytes of objects that CDN zones keep. What was not asked for for longest goes first.',
  }),
  CDN_OBJECTS: integer({
    default: '250000',
    min: 1,
    max: 100_000_000,
    description: 'Objects that CDN zones keep. Each takes about 2 KB of memory.',
  }),
  CDN_MEMORY_MB: integer({
    default: '64',
    min: 0,
    max: 1_000_000,
    description: 'Megabytes of small objects that were asked for lately and are held in memory.',
  }),
  CDN_OBJECT_MB: integer({
    default: '1024',
    min: 1,
    max: 1_000_000,
    description: 'Megabytes of the largest object that is kept. Larger ones are passed through.',
  }),
  CDN_VARNISH_NODES: varnishNodes({
    default: '',
    description:
      'Varnish servers that cache for CDN zones instead of this process: address, port and management port, such as ' +
      '192.0.2.1:6081/6082, and =directory (-n) of one on this machine, for its counters.',
  }),
  CDN_VARNISH_SECRET_FILE: path({
    default: null,
    description: 'File with the secret of their management ports (-S).',
  }),
  CDN_GATEWAY: resolvers({
    default: '127.0.0.1:6079',
    description: 'Address and port of this host at which Varnish fetches what it does not have.',
  }),
};
