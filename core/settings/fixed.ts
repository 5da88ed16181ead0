// Values that no operator sets. They are part of `Config`, so that tests can start a service with others.

type Place = 'separate' | 'in_process';

export interface FixedValues {
  /** Where the ingress and the cache of CDN zones run. A process of its own serves on while this one restarts. */
  readonly ingressProcess: Place;
  /** Where questions to the name server are answered. */
  readonly dnsProcess: Place;
  /** Servers at which the check of a delegation starts; empty: the root servers of the Internet. */
  readonly dnsRoots: readonly string[];
  /** UDP responses to one network of clients without a DNS cookie. */
  readonly dnsResponsesPerSecond: number;
  /** Port of the mail servers of recipients. */
  readonly mailDirectPort: number;
  /** Of a message, encoded as it is sent. */
  readonly mailSizeMb: number;
  /** After which a build or a run is stopped. */
  readonly buildOutputMb: number;
  /** Between two checks of the branch of an application with auto-deploy. */
  readonly gitPollSeconds: number;
  /** File or URL of a list of Python builds in the format of uv; null: the list in uv. */
  readonly pythonBuilds: string | null;
  /** That the response to a password rotation waits for the database server to apply it. */
  readonly operationWaitSeconds: number;
  /** Without a request from any probe of a region, after which the region no longer counts. */
  readonly probeLostSeconds: number;
  /** After which a repository of backups that takes and gives nothing is given up for this time. */
  readonly backupStalledSeconds: number;
  /** Between two evaluations of the alarms of the installation. */
  readonly alarmSeconds: number;
}

export const fixedValues: FixedValues = {
  ingressProcess: 'separate',
  dnsProcess: 'separate',
  dnsRoots: [],
  dnsResponsesPerSecond: 1_000,
  mailDirectPort: 25,
  mailSizeMb: 50,
  buildOutputMb: 16,
  gitPollSeconds: 60,
  backupStalledSeconds: 600,
  pythonBuilds: null,
  operationWaitSeconds: 20,
  probeLostSeconds: 60,
  alarmSeconds: 15,
};
