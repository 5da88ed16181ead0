// Names that were settings once. One that is still set is named at the start, with what to do.

const WITHOUT_VARNISH =
  'Each ingress caches for CDN zones itself, in CDN_DIR and up to CDN_SIZE_GB. The Varnish servers can be stopped.';

/** By name: why it is not needed, and what to do where more than leaving it out is to be done. */
const removed: Readonly<Record<string, string>> = {
  CDN_GATEWAY: WITHOUT_VARNISH,
  CDN_VARNISH_NODES: WITHOUT_VARNISH,
  CDN_VARNISH_SECRET_FILE: WITHOUT_VARNISH,
  DNS_PROCESSES: 'One process answers DNS queries. For more of them a second, use PowerDNS (POWERDNS_URL).',
  INGRESS_PROCESS: 'The ingress always runs in a process of its own.',
};

/** A sentence for each removed setting that is set. */
export function removedSettings(env: NodeJS.ProcessEnv): string[] {
  return Object.entries(removed).flatMap(([name, instead]) =>
    env[name]?.trim() ? [`${name} is not a setting any more and has no effect. ${instead} Remove it.`] : [],
  );
}
