// Names of the API as people read them.

const ABBREVIATIONS = new Set(
  (
    'ai api cdn cors cpu dkim dns dnssec git http https id ids ip mb gb mx s3 smtp soa spf sql ssh ttl url urls utc ' +
    'uri ca sha hsts tls caa dmarc fqdn vcpu'
  ).split(' '),
);

/** `dns_zones`, `dns_zone.created` and `verifyDnsZone` -> `DNS zones`, `DNS zone created` and `Verify DNS zone`. */
export function words(name: string): string {
  const parts = name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .split(/[._]/)
    .filter(Boolean)
    .map((part) => (ABBREVIATIONS.has(part) ? abbreviation(part) : part === 'env' ? 'environment' : part));
  const text = parts.join(' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** `DNS zone` of `DnsZone` or `dns_zone`, as in the middle of a sentence. */
export function kindWords(type: string): string {
  const text = words(type);
  return /^[A-Z][a-z]/.test(text) && !text.startsWith('Git ') ? text.charAt(0).toLowerCase() + text.slice(1) : text;
}

function abbreviation(part: string): string {
  if (part === 'git') return 'Git';
  if (part === 'vcpu') return 'vCPU';
  return part.endsWith('s') &&
    part !== 'dns' &&
    part !== 'cors' &&
    part !== 'https' &&
    part !== 'hsts' &&
    part !== 'tls'
    ? `${part.slice(0, -1).toUpperCase()}s`
    : part.toUpperCase();
}
