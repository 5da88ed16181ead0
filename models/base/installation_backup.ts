// While a backup of the installation is made, files that no row needs any longer stay: the backup of the rows, which
// was made first, may need them.

const LOCK = `hashtext('platform-api files without rows')`;

/** Condition of SQL. A statement with it that takes files away is not begun during a backup. */
export const NO_BACKUP_IS_MADE = `(select pg_try_advisory_xact_lock_shared(${LOCK}))`;

/** Of the session that makes a backup, first: false where another one does. */
export const CLAIM_BACKUP = `select pg_try_advisory_lock(hashtext('platform-api installation backup')) as held`;

/** Then: false while files are just taken away. */
export const HOLD_FILES = `select pg_try_advisory_lock(${LOCK}) as held`;
