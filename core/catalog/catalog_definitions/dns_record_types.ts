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
    type: 'DS',
    description: 'Digest of the key of a zone below this one, beside its NS records (RFC 4034 §5): `12345 13 2 49FD…`.',
    fields: [],
    apex_allowed: false,
  },
  {
    type: 'HTTPS',
    description:
      'How clients reach the web server of the name (RFC 9460): `1 . alpn=h3,h2`, or `0 shop.example.net` as an alias.',
    fields: [],
    apex_allowed: true,
  },
  {
    type: 'LOC',
    description: 'Location of the name (RFC 1876): `52 22 23.000 N 4 53 32.000 E 2.00m`.',
    fields: [],
    apex_allowed: true,
  },
  {
    type: 'MX',
    description: 'Mail server of the name. The lowest priority is preferred.',
    fields: ['priority'],
    apex_allowed: true,
  },
  {
    type: 'NAPTR',
    description:
      'Rule for rewriting the name, for telephony (RFC 3403): `100 10 "s" "SIP+D2U" "" _sip._udp.example.net`.',
    fields: [],
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
    type: 'SSHFP',
    description: 'Fingerprint of a host key of SSH (RFC 4255): algorithm, type of the fingerprint, fingerprint.',
    fields: [],
    apex_allowed: true,
  },
  {
    type: 'SVCB',
    description: 'How clients reach a service of the name (RFC 9460): `1 dns.example.net alpn=dot port=853`.',
    fields: [],
    apex_allowed: true,
  },
  {
    type: 'TLSA',
    description:
      'Certificate of the TLS server at the port that the name says, such as `_25._tcp.mail` (RFC 6698, RFC 7672).',
    fields: [],
    apex_allowed: false,
  },
  {
    type: 'TXT',
    description: 'Text, for example a proof of ownership or a mail policy.',
    fields: [],
    apex_allowed: true,
  },
];
