// Loaded into the operator's command before its program: a repository that hangs is given up after seconds.
Object.assign(require('../../../dist/core/settings/fixed').fixedValues, {
  backupStalledSeconds: Number(process.env.STALLED_SECONDS ?? 4),
});
