// Names that were settings once. One that is still set is named at the start, with what to do.

/** By name: why it is not needed, and what to do where more than leaving it out is to be done. */
const removed: Readonly<Record<string, string>> = {
  DNS_PROCESSES: 'One process answers DNS queries. For more of them a second, use PowerDNS (POWERDNS_URL).',
  INGRESS_PROCESS: 'The ingress always runs in a process of its own.',
};

/** A sentence for each removed setting that is set. */
export function removedSettings(env: NodeJS.ProcessEnv): string[] {
  return Object.entries(removed).flatMap(([name, instead]) =>
    env[name]?.trim() ? [`${name} is not a setting any more and has no effect. ${instead} Remove it.`] : [],
  );
}
