// Limits of the service. Units are in the names; limits that operators may change are in core/settings.ts.

const MIB = 1024 * 1024;

/** Limits of one project; null = unlimited. `QUOTAS` overrides them, GET /v2/projects/{id}/usage shows them. */
export const projectQuotas = {
  applications: 100,
  previews: 50,
  databases: 20,
  database_storage_gb: 1000,
  volumes: 100,
  volume_storage_gb: 2000,
  buckets: 50,
  bucket_storage_bytes: 1_000_000_000_000,
  bucket_access_keys: 100,
  dns_zones: 100,
  cdn_zones: 50,
  email_domains: 50,
  email_relay_zones: 20,
  observers: 100,
  notifiers: 50,
  git_integrations: 20,
  shared_repositories: 100,
  registries: 10,
  robot_accounts: 50,
  /** Unfinished ones. */
  runs: 50,
  schedules: 200,
} as const satisfies Record<string, number | null>;

export type QuotaName = keyof typeof projectQuotas;

export const limits = {
  // Lists
  pageSizeDefault: 20,
  /** Default of small lists, which fit on one page: catalogs, error codes, variables, DNS records. */
  pageSizeDefaultSmall: 100,
  pageSizeMax: 100,
  logPageSizeDefault: 100,
  logPageSizeMax: 1000,
  /** A position in two lists has four snapshots, with space for 150 open transactions each. */
  cursorCharactersMax: 8192,

  // AI usage
  aiUsageDaysMax: 366,
  /** Older events are rejected; event ids are removed two days later. */
  aiUsageEventDays: 35,
  aiUsageBatchMax: 1000,
  aiUsageBodyBytes: MIB,
  aiUsageCountMax: 1_000_000_000_000,

  // Images of applications
  imageLayersMax: 127,
  imageFilesMax: 500_000,
  imageBytesMax: 16 * 1024 * MIB,

  // Requests
  bodyBytesMax: MIB,
  headerBytesMax: 16 * 1024,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  keepAliveTimeoutMs: 65_000,
  /** A connection on which neither side sends or receives anything for this long ends, unless we work at a request. */
  silentTimeoutMs: 120_000,
  /** Open connections of one public address at the API, at S3, at the registry. */
  connectionsPerAddress: 500,
  /** Of one public address at the ingress, where all visitors of an office or of a proxy come. */
  visitorsPerAddress: 2_000,
  probeTimeoutMs: 5_000,
  /** Of a probe whose repository answers, however slowly. */
  sourceProbeMs: 25_000,
  /** Maximum of `Prefer: wait=N`. */
  preferWaitSecondsMax: 60,
  /** Open live tails per account and process. */
  streamsPerAccount: 20,
  idempotencyKeyCharactersMax: 255,
  idempotencyTtlHours: 24,

  // PostgreSQL
  connectionTimeoutMs: 5_000,
  statementTimeoutMs: 10_000,
  idleTransactionTimeoutMs: 15_000,

  // Requests per account and minute, by budget
  rateBudgetsPerMinute: { read: 1200, write: 300, deploy: 60 },
  rateWindowSeconds: 60,
  /** Failed authentications per address and minute. */
  failedAuthPerMinute: 30,

  // Identity
  identityCacheMs: 2_000,
  sessionIdleHours: 24,
  sessionTtlDays: 30,
  passwordCharactersMin: 12,
  passwordCharactersMax: 200,
  recoveryCodesPerUser: 10,
  keysPerUser: 100,
  keysPerProject: 50,
  membersPerProject: 200,
  projectsPerAccount: 100,
  activityRetentionDays: 90,
  /** How long a call waits for its approval. */
  approvalWaitHours: 24,
  /** How long an approval can be used, and how long a refusal holds. */
  approvalUseMinutes: 60,
  pendingApprovalsPerProject: 100,
  /** How long a key that was let go on is not paused again. */
  resumedKeyMinutes: 60,
  /** How long the values from before a change are kept, and how many bytes of them for an entry and for a project. */
  /** What is older is not removed for good in these hours after its deletion, nor does a newer owner end others. */
  lossWaitHours: 24,
  activityUndoDays: 7,
  activityUndoBytesMax: 512 * 1024,
  activityUndoBytesPerProject: 32 * 1024 * 1024,

  // Dynamic client registration
  registrationBodyBytesMax: 16 * 1024,
  registrationsPerAddressAndHour: 20,
  registeredClientsMax: 10_000,
  /** A registered client without any consent is removed after this time. */
  unusedRegistrationHours: 24,
  clientNameCharactersMax: 60,
  redirectUrisMax: 10,

  // GraphQL
  graphqlBodyBytesMax: 256 * 1024,
  /** The introspection query of common tools is 13 deep. */
  graphqlDepthMax: 15,
  graphqlAliasesMax: 20,
  /** Rate-limit points of an introspection query. One that is not kept takes as long as some hundred reads. */
  introspectionPoints: 20,
  graphqlRootFieldsMax: 20,
  graphqlFieldsMax: 500,
  graphqlTokensMax: 4_000,
  /** Without authentication: four times the introspection query of common tools. */
  graphqlStrangerTokensMax: 1_000,
  graphqlCostMax: 5_000,

  // Kinds
  volumeSizeMinGb: 1,
  volumeSizeMaxGb: 1000,
  volumeSizeStepGb: 1,
  volumeSizeDefaultGb: 10,
  envVariablesPerApplication: 500,
  /**
   * Names and values together. Linux starts a program with 2 MiB of arguments and variables (execve(2), a stack of
   * 8 MiB), Kubernetes keeps 1 MiB in a Secret; the platform adds its own, and programs start others with arguments.
   */
  environmentBytesMax: 1_000_000,
  domainsPerApplication: 100,
  recordsPerDnsZone: 2000,
  suppressionsPerRelayZone: 100_000,
  /** Daily recipients of a relay zone without a `daily_limit`. */
  mailRecipientsPerDay: 50_000,
  /** RFC 5321 §4.5.3.1.8 requires at least 100. */
  mailRecipientsPerMessage: 500,
  /** Deployments available for a rollback: their files are kept. */
  deploymentsRollbackMax: 10,
  deploymentsKeptMax: 100,
  processesPerApplication: 50,
  /** Runs of an application that have not finished. */
  unfinishedRunsPerApplication: 10,
  runSecondsDefault: 60 * 60,
  /** Output of each of the two streams that a late client of a run gets, unless it asks for more. */
  runReplayBytes: 65_536,
  /** Retention of finished runs. Their lines are kept as long as those of the application. */
  runsKeptDays: 30,
  schedulesPerApplication: 50,
  /** A due time that the platform reaches later than this was missed. */
  scheduleLateSecondsMax: 5 * 60,
  /** How long it is known what became of a due time. */
  scheduleFiringsKeptDays: 7,
  sourceUploadsPerApplication: 50,
  /** Validity of an upload URL. */
  sourceUploadSeconds: 60 * 60,
  /** Retention of an upload that no deployment uses. */
  sourceUploadKeptHours: 24,
  sourceFilesMax: 300_000,
  /** Of an application, preview or database server, each line with the bytes of its row. */
  logBytesPerSecond: 32 * 1024,
  /** After which an image that has lost its last tag is removed. */
  registryUntaggedDays: 7,
  /** Of one archive, from its turn on. */
  archiveCheckSecondsMax: 300,
  /** Of all archives of an account together, within the window. */
  archiveCheckSeconds: 60,
  archiveCheckWindowSeconds: 120,
  previewHoursMin: 1,
  previewDaysMax: 30,
  domainVerificationHours: 72,
  databaseUsersMax: 50,
  /** Maximum time for applications to switch to a new password before the previous one ends. */
  passwordRotationMinutesMax: 30,
  /** Delay of the first scheduled backup of a new database, at any hour. */
  firstBackupMinutes: 10,
  /** Retention of the last backup of a deleted database. */
  databaseGraceDays: 7,
  endpointsPerDatabase: 10,
  replicasPerDatabase: 5,
  manualBackupsPerDatabase: 20,
  /** Ended ones beyond them are forgotten. */
  importsPerDatabase: 20,
  poolSizeDefault: 20,
  manualBackupsPerVolume: 20,
  volumeBackupDaysDefault: 7,
  /** Validity of a download URL. */
  backupDownloadSeconds: 15 * 60,

  // Logs and metrics
  /** Retention of database log lines in days. */
  databaseLogDays: 7,
  /** Maximum retention of log lines and metric points in days; an application's log_retention_days may be less. */
  observationDaysMax: 31,
  /** Points of one series in one response. */
  metricPointsMax: 10_000,
} as const;
