// All columns whose values are sealed (core/secrets.ts), for models, which seal and open them, and for the command that
// encrypts them again after a rotation of the secret key (reencrypt.ts). A column that values are copied from comes
// before the one that they are copied to.

export interface SealedColumn {
  tables: readonly string[];
  column: string;
  /** Columns of text, unique together in each of the tables. */
  key: readonly string[];
  /** Binds a value to its row, by the values of `key`: copied into another row it cannot be opened. */
  contextOf(...key: string[]): string;
}

export const sealedColumns = {
  totpSecret: inTable('users', 'totp_secret', (id: string) => `users:${id}:totp_secret`),
  loginAttempt: inTable('login_attempts', 'payload', (hash: string) => `login_attempts:${hash}`, ['hash']),
  oauthRecord: inTable('oauth_records', 'payload', (kind: string, hash: string) => `oauth_records:${kind}:${hash}`, [
    'kind',
    'hash',
  ]),
  idempotentAnswer: inTable('idempotency_records', 'answer', (scope: string) => `idempotency:${scope}`, ['scope']),
  variable: inTable(
    'environment_variables',
    'value',
    (application: string, key: string) => `environment_variables:${application}:${key}`,
    ['application_id', 'key'],
  ),
  volumeBackupPassphrase: inTable('volume_backups', 'passphrase', (id: string) => `volume_backups:${id}`),
  previewVariables: inTable('previews', 'database_variables', (id: string) => `previews:${id}:database_variables`),
  releaseVariables: inTable('releases', 'variables', (id: string) => `releases:${id}`),
  runVariables: inTable('runs', 'variables', (id: string) => `runs:${id}`),
  databaseAdminPassword: inTable('databases', 'admin_password', (id: string) => `databases:${id}:admin_password`),
  importSource: inTable('database_imports', 'sealed_source', (id: string) => `database_imports:${id}:source`),
  databaseUserPassword: inTable('database_users', 'password', (id: string) => `database_users:${id}`),
  // A rotation copies the password to it.
  previousDatabaseUserPassword: inTable('database_users', 'previous_password', (id: string) => `database_users:${id}`),
  // The key stays when a replica becomes a database.
  databaseServerKey: {
    tables: ['database_replicas', 'databases'],
    column: 'tls_key',
    key: ['server_id'],
    contextOf: (server: string) => `servers:${server}:tls_key`,
  },
  authorityKey: inTable('authorities', 'key', (id: string) => `authorities:${id}`),
  certificateKey: inTable('certificates', 'key', (hostname: string) => `certificates:${hostname}`),
  unfinishedOrder: inTable('certificates', 'unfinished', (hostname: string) => `certificates:${hostname}:unfinished`),
  acmeAccountKey: inTable('acme_accounts', 'key', (authority: string) => `acme_accounts:${authority}`, ['authority']),
  bucketAccessKey: inTable('bucket_access_keys', 'sealed_secret', (id: string) => `bucket_access_keys:${id}:secret`),
  zoneSigningKeys: inTable('dns_zones', 'signing_keys', (id: string) => `dns_zones:${id}`),
  /** The same text, put aside. */
  zoneRetiredSigningKeys: inTable('dns_zones', 'retired_signing_keys', (id: string) => `dns_zones:${id}`),
  dkimKeys: inTable('email_domains', 'dkim_keys', (id: string) => `email_domains:${id}:dkim_keys`),
  platformMail: inTable('email_outbox', 'sealed', (id: string) => `email_outbox:${id}`),
  gitTokens: inTable('git_integrations', 'sealed_tokens', (id: string) => `git_integrations:${id}:tokens`),
  gitGrant: inTable('git_integrations', 'sealed_grant', (id: string) => `git_integrations:${id}:grant`),
  gitHook: {
    tables: ['git_repositories', 'shared_repositories'],
    column: 'sealed_hook',
    key: ['id'],
    contextOf: (id: string) => `git_hooks:${id}`,
  },
  deployKey: inTable('shared_repositories', 'sealed_key', (id: string) => `shared_repositories:${id}:key`),
  notifierConfig: inTable('notifiers', 'sealed_config', (id: string) => `notifiers:${id}:config`),
  approvalInput: inTable('approvals', 'sealed_input', (id: string) => `approvals:${id}:input`),
  observerHeaders: inTable('observers', 'sealed_headers', (id: string) => `observers:${id}:headers`),
  // Changes copy values of the others to it.
  activityUndo: inTable('activity_undos', 'undo', (id: string) => `activity_undos:${id}`),
} satisfies Record<string, SealedColumn>;

function inTable<Key extends string[]>(
  table: string,
  column: string,
  contextOf: (...key: Key) => string,
  key: readonly string[] = ['id'],
): Omit<SealedColumn, 'contextOf'> & { contextOf: typeof contextOf } {
  return { tables: [table], column, key, contextOf };
}
