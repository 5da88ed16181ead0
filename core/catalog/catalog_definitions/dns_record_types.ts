import type { DnsRecordTypeRow } from '../catalog_rows';

export const dnsRecordTypeRows: DnsRecordTypeRow[] = [
  { type: 'A', description: 'IPv4 address of the name.', fields: [], apex_allowed: true },
  { type: 'AAAA', description: 'IPv6 address of the name.', fields: [], apex_allowed: true },
  {
    type: 'ALIAS',
    description:
      'Addresses of another name, returned as A and AAAA records. Use it to point the apex of a zone to a host name.',
    fields: [],
    apex_allowed: true,
  },
  {
    type: 'CAA',
    description: 'Certificate authorities that may issue certificates for the name (RFC 8659).',
    fields: ['flags', 'tag'],
    apex_allowed: true,
  },
  {
    type: 'CNAME',
    description: 'Canonical name of the name. No other record may have the same name (RFC 1034 §3.6.2).',
    fields: [],
    apex_allowed: false,
  },
  {
    type: 'MX',
    description: 'Mail server of the name. The lowest priority is preferred.',
    fields: ['priority'],
    apex_allowed: true,
  },
  { type: 'NS', description: 'Name server of the name.', fields: [], apex_allowed: true },
  { type: 'PTR', description: 'Name of an IP address.', fields: [], apex_allowed: false },
  {
    type: 'SRV',
    description: 'Host and port of a service (RFC 2782).',
    fields: ['priority', 'weight', 'port'],
    apex_allowed: false,
  },
  {
    type: 'TXT',
    description: 'Text, for example a proof of ownership or a mail policy.',
    fields: [],
    apex_allowed: true,
  },
];
