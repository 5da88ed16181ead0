// Settings of the CDN cache, in the process with INGRESS_PORT.
import { hostname, integer, path, resolvers, varnishNodes } from '../setting_types';

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
  CDN_VARNISH_NODES: varnishNodes({
    default: '',
    description:
      'Varnish servers that cache for CDN zones instead of this process: address, port and management port, such as ' +
      '192.0.2.1:6081/6082, and =directory (-n) of one on this machine, for its counters.',
  }),
  CDN_VARNISH_SECRET_FILE: path({
    default: null,
    description: 'File with the secret of the management ports of the Varnish servers (-S).',
  }),
  CDN_GATEWAY: resolvers({
    default: '127.0.0.1:6079',
    description: 'Address and port of this host at which Varnish fetches objects that it has not cached.',
  }),
};
