// Names that were settings once. One that is still set is named at the start, with what to do.
import { join, resolve } from 'node:path';
import { hasEntries, isSameDirectory } from '../directory';

const WITHOUT_VARNISH =
  'Each ingress caches for CDN zones itself, up to CDN_SIZE_GB. The Varnish servers can be stopped.';

/** By name: what is done now, and what to do where more than leaving it out is to be done. */
const removed: Readonly<Record<string, string>> = {
  BUILD_OUTPUT_MB: 'A build and a run may print 16 MB.',
  CDN_DIR: 'Cached objects are in `cdn` in the data directory: delete the former directory.',
  CDN_GATEWAY: WITHOUT_VARNISH,
  CDN_MEMORY_MB: 'Small objects take 64 MB of memory.',
  CDN_OBJECTS: 'The number of cached objects follows from CDN_SIZE_GB.',
  CDN_OBJECT_MB: 'Objects of up to 1 GB are cached.',
  CDN_VARNISH_NODES: WITHOUT_VARNISH,
  CDN_VARNISH_SECRET_FILE: WITHOUT_VARNISH,
  CHECK_CONCURRENCY: 'A process runs 2,000 checks at the same time.',
  DNS_PROCESSES: 'One process answers DNS queries. For more of them a second, use PowerDNS (POWERDNS_URL).',
  DNS_RESPONSES_PER_SECOND: 'A network of clients without a DNS cookie gets 1,000 responses a second.',
  DNS_ROOTS: 'The check of a delegation starts at the root servers of the Internet.',
  GIT_POLL_SECONDS: 'A branch with auto-deploy is checked every minute.',
  INGRESS_PROCESS: 'The ingress always runs in a process of its own.',
  LOG_BYTES_PER_SECOND: 'A log may take 32 KiB a second.',
  MAIL_DIRECT_PORT: 'Mail servers of recipients are asked on port 25.',
  MAIL_RETRY_HOURS: 'Delivery is tried again for 72 hours.',
  MAIL_SINK_MESSAGES: 'The sink keeps 1,000 messages.',
  MAIL_SIZE_MB: 'A message may have 50 MB.',
  OPERATION_WAIT_SECONDS: 'A password rotation waits for the database server for 20 seconds.',
  PROBE_LOST_SECONDS: 'A region without a request from its probes for 60 seconds does not count.',
  PYTHON_BUILDS: 'Builds come from the list in uv. PYTHON_MIRROR says from where.',
  REGION_CITY: 'Set REGION_LOCATION to city and country, such as `Frankfurt, DE`.',
  REGION_COUNTRY: 'Set REGION_LOCATION to city and country, such as `Frankfurt, DE`.',
  REGISTRY_UNTAGGED_DAYS: 'An image that has lost its last tag is removed after 7 days.',
  WORKER_CONCURRENCY: 'A process runs 4 background jobs at the same time.',
};

/** Settings of directories, and the part of the data directory that each of them was for. */
const directories: Readonly<Record<string, string>> = {
  DATABASE_DIR: 'databases',
  REGISTRY_DIR: 'registry',
  RUNTIME_DIR: 'runtime',
  S3_DIR: 'objects',
  VOLUME_DIR: 'volumes',
};

const isSet = (env: NodeJS.ProcessEnv, name: string): boolean => Boolean(env[name]?.trim());

/** A sentence for each removed setting that is set. */
export function removedSettings(env: NodeJS.ProcessEnv): string[] {
  const inPlace = Object.entries(directories).map(([name, part]) => [name, `It is \`${part}\` in the data directory.`]);
  return [...Object.entries(removed), ...inPlace].flatMap(([name, instead]) =>
    isSet(env, name as string)
      ? [`${name} is not a setting any more and has no effect. ${instead} Remove ${name} from the settings.`]
      : [],
  );
}

/** Reasons not to start: data that a removed setting leads to would be missing. */
export function missedDirectories(env: NodeJS.ProcessEnv, dataDirectory: string): string[] {
  return Object.entries(directories).flatMap(([name, part]) => {
    if (!isSet(env, name)) return [];
    const [former, present] = [resolve(env[name]?.trim() as string), join(dataDirectory, part)];
    if (isSameDirectory(former, present) || !hasEntries(former)) return [];
    return [
      `${name} is not a setting any more, and ${former} has data. Mount it at ${present} ` +
        `(mkdir -p ${present} && mount --bind ${former} ${present}, and in /etc/fstab: ` +
        `${former} ${present} none bind,nofail 0 0), then remove ${name}`,
    ];
  });
}
