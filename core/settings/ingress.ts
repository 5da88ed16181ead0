// Settings of the ingress: names, addresses, ports and certificates.
import { addresses, email, hostname, httpUrlSetting, integer, listenHost, path, resolvers } from '../setting_types';

export const ingressSettings = {
  APPS_DOMAIN: hostname({
    default: 'localhost',
    description: 'Domain below which applications get their default host names.',
  }),
  INGRESS_HOST: hostname({
    default: null,
    derived: 'ingress. and APPS_DOMAIN',
    description: 'Host name to which the CNAME records of custom domains point.',
  }),
  INGRESS_LISTEN: listenHost({
    default: '127.0.0.1',
    description: 'Address on which the ingress, the router in front of the applications, listens.',
  }),
  INGRESS_PORT: integer({
    default: '8000',
    min: 0,
    max: 65535,
    description:
      'Port on which the ingress listens. The process that holds it runs the applications. 0 selects a free port.',
  }),
  INGRESS_TLS_PORT: integer({
    default: null,
    min: 0,
    max: 65535,
    description:
      'Port on which the ingress listens with TLS. 0 selects a free port. If not set, the ingress has no TLS.',
  }),
  INGRESS_IPS: addresses({
    default: '',
    derived: 'those of INGRESS_HOST',
    description: 'IP addresses to which the A and AAAA records of custom domains at an apex point.',
  }),
  DNS_RESOLVERS: resolvers({
    default: '',
    derived: "the system's",
    description: 'DNS resolvers for the verification of domains, and for hosts that users name.',
  }),
  ACME_DIRECTORY: httpUrlSetting({
    default: null,
    description:
      'ACME directory (RFC 8555) for certificates of custom domains, of the platform and of its applications. By ' +
      'setting it, you accept its terms of service.',
  }),
  ACME_EMAIL: email({
    default: null,
    description: 'E-mail address for messages of the certificate authority, and about certificates of the platform.',
  }),
  ACME_CA_FILE: path({
    default: null,
    description:
      'File with additional root certificates (PEM) to trust at ACME_DIRECTORY, for a private certificate authority.',
  }),
  INGRESS_CERT_FILE: path({
    default: null,
    description: 'File with the certificate chain (PEM) for *.APPS_DOMAIN. It is reloaded when it changes.',
  }),
  INGRESS_KEY_FILE: path({ default: null, description: 'File with the private key (PEM) of INGRESS_CERT_FILE.' }),
};
