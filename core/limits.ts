// Numbers that bound the service. Units are in the names; those that an operator may change are in core/settings.ts.

const MIB = 1024 * 1024;

/** Limits of one project; null = none. `QUOTAS` changes them, GET /v2/projects/{id}/usage shows them. */
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
} as const satisfies Record<string, number | null>;

export type QuotaName = keyof typeof projectQuotas;

export const limits = {
  // Lists
  pageSizeDefault: 20,
  /** Lists of small sets, which come in one page: catalogs, error codes, variables, DNS records. */
  pageSizeDefaultSmall: 100,
  pageSizeMax: 100,
  logPageSizeDefault: 100,
  logPageSizeMax: 1000,
  /** A position in two lists has four snapshots, with room for 150 open transactions each. */
  cursorCharactersMax: 8192,

  // AI usage
  aiUsageDaysMax: 366,
  /** Events that are older are refused; their ids are forgotten two days later. */
  aiUsageEventDays: 35,
  aiUsageBatchMax: 1000,
  aiUsageBodyBytes: MIB,
  aiUsageCountMax: 1_000_000_000_000,

  // Images that applications run
  imageLayersMax: 127,
  imageFilesMax: 500_000,
  imageBytesMax: 16 * 1024 * MIB,

  // Requests
  bodyBytesMax: MIB,
  zoneImportBodyBytesMax: 2 * MIB,
  headerBytesMax: 16 * 1024,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  keepAliveTimeoutMs: 65_000,
  probeTimeoutMs: 5_000,
  /** How long an operation that must change the world before it answers waits for the loop. */
  operationWaitMs: 20_000,
  /** `Prefer: wait=N` waits this long at most. */
  preferWaitSecondsMax: 60,
  /** Live tails that an account may have open in one process. */
  streamsPerAccount: 20,
  idempotencyKeyCharactersMax: 255,
  idempotencyTtlHours: 24,

  // PostgreSQL
  connectionTimeoutMs: 5_000,
  statementTimeoutMs: 10_000,
  idleTransactionTimeoutMs: 15_000,

  // Calls of one account a minute, per budget
  rateBudgetsPerMinute: { read: 1200, write: 300, deploy: 60 },
  rateWindowSeconds: 60,
  /** Failed authentications of one address a minute. */
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

  // Clients that register themselves with the authorisation server
  registrationBodyBytesMax: 16 * 1024,
  registrationsPerAddressAndHour: 20,
  registeredClientsMax: 10_000,
  /** A client that nobody has allowed anything is forgotten after this time. */
  unusedRegistrationHours: 24,
  clientNameCharactersMax: 60,
  redirectUrisMax: 10,

  // GraphQL
  graphqlBodyBytesMax: 256 * 1024,
  /** The introspection query of common tools is 13 deep. */
  graphqlDepthMax: 15,
  graphqlAliasesMax: 20,
  /** Rate-limit points of a query that asks for the schema, which takes as long as some hundred reads. */
  introspectionPoints: 10,
  graphqlRootFieldsMax: 20,
  graphqlFieldsMax: 500,
  graphqlTokensMax: 4_000,
  /** Without a key: four times the introspection query of common tools. */
  graphqlStrangerTokensMax: 1_000,
  graphqlCostMax: 5_000,

  // Kinds
  volumeSizeMinGb: 1,
  volumeSizeMaxGb: 1000,
  volumeSizeStepGb: 1,
  volumeSizeDefaultGb: 10,
  envVariablesPerApplication: 500,
  domainsPerApplication: 100,
  recordsPerDnsZone: 2000,
  suppressionsPerRelayZone: 100_000,
  /** Recipients a day of a relay zone without a `daily_limit`. */
  mailRecipientsPerDay: 50_000,
  /** RFC 5321 §4.5.3.1.8 asks for at least 100. */
  mailRecipientsPerMessage: 500,
  /** Versions of an application that can be rolled back to: their files are kept. */
  deploymentsRollbackMax: 10,
  deploymentsKeptMax: 100,
  processesPerApplication: 50,
  sourceUploadsPerApplication: 50,
  /** How long the address of an upload works. */
  sourceUploadSeconds: 60 * 60,
  /** An upload that no deployment uses is kept so long. */
  sourceUploadKeptHours: 24,
  sourceFilesMax: 300_000,
  previewHoursMin: 1,
  previewDaysMax: 30,
  domainVerificationHours: 72,
  databaseUsersMax: 50,
  /** How long applications may take to run with a new password until the previous one ends. */
  passwordRotationMinutesMax: 30,
  /** A new database gets its first scheduled backup after this time, whatever the hour. */
  firstBackupMinutes: 10,
  /** The last backup of a deleted database is kept so long. */
  databaseGraceDays: 7,
  endpointsPerDatabase: 10,
  replicasPerDatabase: 5,
  manualBackupsPerDatabase: 20,
  poolSizeDefault: 20,
  /** How long the address of a download works. */
  backupDownloadSeconds: 15 * 60,

  // Logs and metrics
  /** Days that the lines of a database are kept. */
  databaseLogDays: 7,
  /** Days that lines and points are kept at most; an application's log_retention_days may be less. */
  observationDaysMax: 31,
  /** Points of one series in one answer. */
  metricPointsMax: 10_000,
} as const;
