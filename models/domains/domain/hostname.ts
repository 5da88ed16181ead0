// Rules for host names, of the DNS and of the platform.
import { getDomain, getPublicSuffix } from 'tldts';
import type { Config } from '../../../core/config';
import { ownHostnames } from '../../../core/platform_names';
import { validationFailed } from '../../../core/errors';
import type { DomainType } from '../../../schema/types';

const asGiven = { extractHostname: false, validateHostname: false };

/**
 * Whether a name is an apex or a subdomain, by the public suffix list (publicsuffix.org) with its private part:
 * shop.uk.com is an apex, and so is uk.com itself.
 */
export function typeOf(hostname: string): DomainType {
  if (hostname.startsWith('*.')) return 'wildcard';
  const registrable = getDomain(hostname, { ...asGiven, allowPrivateDomains: true });
  return registrable === null || registrable === hostname ? 'apex' : 'subdomain';
}

/** The name that a wildcard stands on; of other names the name itself. */
export function baseOf(hostname: string): string {
  return hostname.replace(/^\*\./, '');
}

/** Refuses names that can belong to no customer. @throws validation_failed (hostname, invalid_format) */
export function requireForeign(config: Config, hostname: string): void {
  const base = baseOf(hostname);
  if (getPublicSuffix(base, asGiven) === base) hostnameProblem('is a public suffix');
  if (ownDomains(config).some((own) => covers(own, hostname))) hostnameProblem('belongs to the platform');
}

function ownDomains(config: Config): string[] {
  const { appsDomain, ingressHost, cdnDomain, s3Domain, s3WebsiteDomain } = config;
  return [appsDomain, ingressHost, cdnDomain, s3Domain, s3WebsiteDomain, ...ownHostnames(config)];
}

// A wildcard one level above would take the platform's own name as well.
function covers(own: string, hostname: string): boolean {
  const base = baseOf(hostname);
  const takesOwn = hostname !== base && own.slice(own.indexOf('.') + 1) === base;
  return takesOwn || base === own || base.endsWith(`.${own}`);
}

function hostnameProblem(detail: string): never {
  throw validationFailed([{ field: 'hostname', code: 'invalid_format', detail }]);
}
