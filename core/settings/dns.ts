// Settings of the name server.
import { addresses, hostname, httpUrlSetting, integer, resolvers, text, transferKey } from '../setting_types';

export const dnsSettings = {
  DNS_PORT: integer({
    default: null,
    derived: '53, or 5300 if 53 cannot be bound',
    min: 0,
    max: 65535,
    description: 'Port of the embedded name server, UDP and TCP. 0 switches DNS zones off.',
  }),
  DNS_LISTEN: addresses({
    default: '127.0.0.1',
    description: 'Addresses on which the embedded name server listens, separated by commas.',
  }),
  DNS_DOMAIN: hostname({
    default: null,
    derived: 'dns. and APPS_DOMAIN',
    description: 'Domain of the name servers of DNS zones. Delegate it to this host.',
  }),
  DNS_IPS: addresses({
    default: '',
    derived: 'INGRESS_IPS',
    description: 'Public addresses of the name servers, answered for every name below DNS_DOMAIN.',
  }),
  DNS_SECONDARIES: resolvers({
    default: '',
    description: 'Secondary name servers, which transfer zones (AXFR) and are notified of changes (NOTIFY).',
  }),
  DNS_TRANSFER_KEY: transferKey({
    default: null,
    secret: true,
    description:
      'Key that signs transfers (TSIG with HMAC-SHA256), name:secret in base64. Not set: DNS_SECONDARIES may ' +
      'transfer without a signature.',
  }),
  POWERDNS_URL: httpUrlSetting({
    default: null,
    description:
      'Address of the HTTP API of PowerDNS, such as http://127.0.0.1:8081. Set: PowerDNS serves the zones, and the ' +
      'embedded name server is off.',
  }),
  POWERDNS_API_KEY: text({
    default: null,
    secret: true,
    description: 'Its `api-key`.',
  }),
};
